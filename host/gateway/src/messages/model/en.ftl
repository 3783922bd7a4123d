# What the model is told of what it wanted done, in English.

mra-found = What `{ $call }` found; answer the question from it:
mra-went-wrong = `{ $call }` failed:
mra-say-so = Tell the person honestly that this lookup failed, and why; answer from what is known, and do not guess.
mra-not-started = { $message }
mra-exited = exit code { $code }
mra-signalled = ended by signal { $signal }
mra-printed-nothing = it printed nothing
mra-timed-out = no answer within { $seconds } s
mra-cancelled = it was cancelled
mra-without-a-word = { $what }, nothing on stderr

bad-no-repo = the repository is empty
bad-repo = `{ $repo }` is not the name of a repository: use letters, digits, `.`, `_` and `-`, with `/` between the parts of a nested one; no part may begin with `-`, or be `.` or `..`
bad-no-question = the question is empty
bad-long-question = the question has { $chars } characters and may have { $most }
bad-tool = there is no tool `{ $tool }`; there is { $tools }
bad-tool-none = there is no tool `{ $tool }`, and none at all now: answer in words
bad-input = `{ $tool }` needs `{ $key }`, a text that is not empty

flaw-key = `{ $tag }` without `{ $key }`
flaw-open = `{ $tag }` without an end
flaw-extra = `{ $tag }` after another directive
flawed = { $flaws }; write one field a line, `repo: …` and `question: …`, and end the block with three backticks; or answer without it
flawed-too = not carried out: { $flawed }

told-used-up = the limit of calls for this question is used up: answer now with what you have, and say what is missing
told-echo = not carried out: this call repeats a text of the conversation or of a result instead of being your own decision
told-beside-calls = not carried out: a block next to tool calls; call the tool `{ $tool }` instead
told-no-code = there is no code to look into here: answer without it
told-not-listed = `{ $repo }` is not one of the repositories that can be asked about: { $listed }
told-bounded = not asked: the limit is { $most } such questions an hour for one { $of ->
    [person] person
   *[conversation] conversation
}, and it has been reached; do not try again, tell the person
told-switched-off = not asked: such questions are switched off; do not try again, tell the person
told-just-answered = someone who knows has just answered: pass on what they said
told-already = not asked: people have been asked in this thread already and have not answered yet; tell the person that this question has to wait for that answer
told-too-long = not asked: the question is too long for people to read; put it in at most 2,000 characters and try again, or tell the person
told-nobody = nobody is set up to be asked: tell the person so, and that an admin can change it
told-in-group = not asked: nobody outside this group conversation can be asked here; tell the person to ask this in a direct message with you
told-proposed = not asked yet: the person has not asked this themselves, so they are shown the question, and it goes out once they say yes to it; tell them so
told-asked = the question was put to the people who know, in the same thread; their answer comes later
told-asked-apart = the question was put to the people who know, each in a direct message; their answer comes later

pass-on = The question that was passed on has been answered. Write the answer for the person who asked: the conclusion first, every fact, number and name kept, nothing added that is not in the reply, in the language of the person who asked.
pass-on-question = Question: { $question }
pass-on-reason = Why it was passed on: { $reason }
pass-on-exchange = What was said in between:
pass-on-reply = The reply of { $user }:
