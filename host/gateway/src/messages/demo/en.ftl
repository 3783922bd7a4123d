
# What `pmk-host demo` tells.

demo-title = A support thread of { $turns } questions, replayed { $lanes } times in a window of { $window } tokens.
demo-none = no policy
demo-none-about = Default policy, no window set: sends everything until refused.
demo-says = { $lane }: { $answer }
demo-rung = { $rung }
demo-policy-about = Decides before each call what the model sees.
demo-question = Question { $turn } of { $turns }: { $asked }
demo-refused = { $refused ->
    [0] never refused
    [one] refused once
   *[other] refused { $refused } times
}
demo-refuses = The model refuses: { $tokens } tokens is too many
demo-recovered = recovered ({ $rungs })
demo-left-out = { $turns ->
    [one] 1 turn left out
   *[other] { $turns } turns left out
}
demo-asked = Asked at the end, about what was said in question { $turn }:
demo-no-answer = no answer
demo-recalled = { $messages ->
    [one] 1 message brought back
   *[other] { $messages } messages brought back
}
demo-heading-policy = policy
demo-heading-largest = largest request
demo-heading-refused = refused
demo-heading-recovery = recovery
demo-heading-left-out = turns left out
demo-heading-recalled = brought back
demo-heading-found = answer
demo-right = right
demo-wrong = lost
demo-next = Next:
demo-next-run = chat in a small window
demo-next-compare = the same with your own conversations
