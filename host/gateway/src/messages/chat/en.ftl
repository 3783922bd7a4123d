
# The chat at a terminal.

chat-begin = pmk-host { $version }: ask something and press Enter; it remembers what was said
chat-model = model   { $model }, takes { $window } tokens
chat-model-sim = model   sim, a stand-in that quotes you; `pmk-host init` chooses a real one
chat-policy = policy  { $policies }; see `pmk-host demo`
chat-keys = /help shows what else there is, /quit leaves
chat-help = /help      this page
    /context   what of this conversation the model gets to see
    /policy    which policies decide that
    /pmk       what else the gateway can be told to do: `/pmk help`
    /yes /no   your word on the question that you were shown last, where one waits for it
    stop       stop the answer that is being made
    /quit      leave, as do `exit`, Ctrl-D, and Ctrl-C twice; answers under way still come
    Ctrl-C     empty the line
    The dim line below an answer tells which policy decided, and how much of what the model takes was used.
chat-unknown = There is no { $word }; /help shows what there is
chat-leave = Ctrl-C once more leaves
chat-stopped = Somebody stops the gateway: what is still in the line is not asked
chat-waits = :hourglass_flowing_sand: the model has not answered yet ({ $seconds } s)
chat-no-word = Nothing waits for your word
chat-no-effect = Your word had no effect: { $error }
chat-not-stored = Your message was not stored: { $error }
chat-turn = { $tokens } of { $limit } tokens
chat-decided = { $policy }: { $size }
chat-dropped = { $turns ->
    [one] { $turns } turn left out
   *[other] { $turns } turns left out
}
chat-shortened = { $messages ->
    [one] { $messages } message shortened
   *[other] { $messages } messages shortened
}
chat-recalled = { $messages ->
    [one] { $messages } message shown again
   *[other] { $messages } messages shown again
}
