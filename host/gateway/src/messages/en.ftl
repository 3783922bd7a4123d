# What the gateway itself says, in English.

thinking = Thinking…
# Stands behind the name of the bot.
at-work = is working on it…
away = :zzz: pmk gateway is away for a while
back = :wave: pmk gateway is back
back-after = :wave: pmk gateway is back (it was away for about { $minutes ->
    [one] one minute
   *[other] { $minutes } minutes
})
late = :alarm_clock: This answer is { $unit ->
    [minutes] about { $count } minutes
    [hours] about { $count } hours
   *[days] about { $count } days
} late
mra-goes-on = Looking into { $repo }… step { $steps }
asking-mra = Looking into { $repo }…

trimmed = :scissors: { $turns ->
    [0] The conversation was too long; the summary of its earlier part was left out
    [one] The conversation was too long; one older turn was left out
   *[other] The conversation was too long; { $turns } older turns were left out
}
compacted = :scissors: { $turns ->
    [0] The conversation was too long; the summary of its earlier part was shortened
    [one] The conversation was too long; one older turn was summarized
   *[other] The conversation was too long; { $turns } older turns were summarized
}
rotated = :scissors: { $turns ->
    [0] The conversation was too long; it continues from a shorter summary of its earlier part
    [one] The conversation was too long and continues from a summary; one earlier turn is out of view
   *[other] The conversation was too long and continues from a summary; { $turns } earlier turns are out of view
}
rotated-for-admins = :recycle: `{ $session }` was too long and continues in a new session; { $entries ->
    [one] one message stays
   *[other] { $entries } messages stay
} in the archive
recovery-failed = :rotating_light: The prompt of `{ $session }` is too long and recovery failed; the person who asked got an apology instead of an answer
parked = :x: Something went wrong on our side, so this message cannot be answered yet. It is kept{ $admins ->
    [know] {" "}(the admins have been told)
   *[do-not] {""}
} and will be answered once that is fixed. You can keep writing here
parked-for-admins = :rotating_light: A message in `{ $session }` cannot be answered and is parked: { $why }. Once that is fixed, `pmk-host sessions retry { $session }` on the host retries it; `pmk-host sessions parked` lists all parked messages
rest-parked-for-admins = :rotating_light: A message in `{ $session }` was answered, but something besides the answer cannot be delivered and is parked: { $why }. Once that is fixed, `pmk-host sessions retry { $session }` on the host delivers it; `pmk-host sessions parked` lists all parked messages
no-tools = :warning: The server of the model { $model } does not accept tools: from now on the model writes its requests as text, which works less well. To try tools again, stop the gateway (all hosts of a database), run `pmk-host model forget` on the host and start it
policy-suspended = :rotating_light: Policy { $policy } has failed { $failures } times and is suspended for a while; the next one decides instead: { $reason }
policy-refused = :rotating_light: The new policies cannot be used; the previous ones still decide: { $reason }
model-refuses = :rotating_light: The model { $model } refuses whatever anybody asks: { $what } (hint: check the key, the account and the model's name with `pmk-host doctor` on the host; you are told when it answers again, but not if you restart the gateway: then ask it something yourself)
model-answers-again = :white_check_mark: The model { $model } answers again
front-refused = :rotating_light: Slack refuses new connections from me; open ones still work, and I keep trying: { $what } (hint: { $hint })
front-accepted = :white_check_mark: Slack accepts connections from me again
front-unmuted = :white_check_mark: Slack accepts my bot token again: while it did not, nobody got an answer, and nobody could be told so
left-unread = :warning: After the outage, { $count ->
    [one] one conversation is
   *[other] { $count } conversations are
} not read back, because at most { $most } are: what was asked there meanwhile gets no answer unless it is asked again
partly-read = :warning: After the outage, { $count ->
    [one] one conversation was
   *[other] { $count } conversations were
} not read back completely, as too long or not returned by Slack: what was asked in the part that was left out gets no answer unless it is asked again
arm-stopped-for-failures = :no_entry: Experiment `{ $experiment }`: arm `{ $arm }` was stopped because its policies failed in { $bad } of { $of } conversations, against { $control-bad } of { $control-of } for `{ $control }`; its conversations go on with `{ $control }`
arm-stopped-for-overflows = :no_entry: Experiment `{ $experiment }`: arm `{ $arm }` was stopped because prompts were too long in { $bad } of { $of } conversations, against { $control-bad } of { $control-of } for `{ $control }`; its conversations go on with `{ $control }`
experiment-refused = :warning: Experiment `{ $experiment }` was not started: { $why }
experiment-change-refused = :warning: The change to experiment `{ $experiment }` is not used; its previous arms go on: { $why }
files-not-read = :paperclip: Not read: { $files }
file-not-read = { $name } ({ $why ->
    [no-text] not text
    [odd-image] an image format that models cannot read
    [no-images] an image, and this model cannot read images
    [too-large] larger than { $most } KiB
    [large-image] an image larger than { $most } KiB or 8,000 pixels
    [gone] deleted
    [elsewhere] not stored in Slack
    [not-allowed] the app may not read files: it needs the scope `files:read`
    [not-shared] not shared with this app
    [off] files are not read here
   *[other] could not be fetched
})
more-files = { $count } more, because there are too many
images-refused = :paperclip: The model's server refused the images; this answer was written without them.
between = {", "}
pair = { $name }: { $value }
told-no-words = (This message has no text of its own: what it is about is quoted above.)
too-long = :x: The conversation is too long; please ask again in a new thread
message-too-long = :x: This message is too long: about { $tokens } tokens, and at most { $limit } fit; please shorten or split it
cut-short = :scissors: This answer is too long for a message, and could not be posted as a file. The remaining { $chars } characters are kept; an admin can read them with `pmk-host sessions show { $key } --full` on the host
message-too-long-by-itself = :x: This message is too long: about { $tokens } tokens; please shorten or split it
notice-in-person = :incoming_envelope: This is about what you asked, where Slack accepts no message.
in-person = :incoming_envelope: Slack did not accept this answer where you asked, so here it is.
nothing-to-read = :grey_question: I found no text to read in this message
blocked = this account is on the blocklist; its messages are not answered

verbose = { $verbosity ->
    [off] Tool calls are not shown, not even while they run
    [progress] The progress of a tool call is shown while it runs
    [summary] Each tool call is shown in one line
   *[full] Each tool call is shown in one line, and with its result where all readers are `tech`
}
mra-asked = :wrench: `mra ask { $repo }`: { $outcome ->
    [ok] done
   *[failed] failed
} ({ $seconds } s)

model-busy = :x: The model is too busy right now; please ask again later
model-account = :x: The model's account needs attention; please tell an admin
model-unknown = :x: The server does not know the model { $model }; please tell an admin
model-refused = :x: The model declined to answer this
model-timeout = :x: The model did not answer in time; please ask again
model-unreachable = :x: The model could not be reached; please ask again
model-failed = :x: The model reported an error; please ask again, or tell an admin if it keeps happening
stopped = :raised_hand: Stopped
erased-question = (this message was deleted)
erased-answer = (this answer was deleted)
model-silent = :x: The model gave no answer; please rephrase your question and ask again
model-out-of-words = :x: The model reached the limit of its answer before it wrote any text, probably because it thought for too long; please ask for less at once

escalated = :raising_hand: This needs an answer from someone who knows. I have asked in the thread and will tell you as soon as there is one.
escalated-apart = :raising_hand: This needs an answer from someone who knows. I have asked the people responsible in direct messages and will tell you as soon as there is one.
used-up = :no_entry: { $kind ->
    [escalate] I have not asked anybody: the limit is { $most } times an hour per person and per conversation. Please try again later, or ask them yourself.
   *[other] I have not looked into the code again: the limit is { $most } times an hour per person and per conversation. Please try again later.
}
switched-off = :no_entry: { $kind ->
    [escalate] I have not asked anybody: that is switched off here. Please ask them yourself.
   *[other] I have not looked into the code: that is switched off here.
}
proposed = :question: This needs an answer from someone who knows. Since you did not ask this question yourself, you see it first; I will ask it once you say yes.
proposal = :question: { $asker } may I ask the people who know this on your behalf?
    { $question }
proposal-react = React with :white_check_mark: to ask it, or with :x: to drop it. After 24 hours it is dropped.
proposal-type = Type /yes to ask it, or /no to drop it. After 24 hours it is dropped.
proposal-dropped = :x: Not asked.
proposal-expired = :hourglass: Not asked: there was no reply for 24 hours. Please ask again.
already-asked = :hourglass: This thread is waiting for the answer to another question; please ask again once it has arrived, or in a new thread.
confirm-again = :hourglass: This thread is waiting for the answer to another question first. Yours is kept: please say yes to it again once that answer has arrived.
nobody-to-ask = :warning: This needs an answer from someone who knows, but nobody is set up to be asked; please tell an admin.
nobody-reached = :warning: I could reach none of the people who know: no message to them was accepted. Please tell an admin.
escalation = { $contacts } could you help with a question from { $asker }?
    { $question }
escalation-reason = Why: { $reason }
escalation-tried = Already searched without success: { $atoms ->
    [one] one answer
   *[other] { $atoms } answers
} in the knowledge base, { $mra ->
    [one] one question
   *[other] { $mra } questions
} about the code.
reply-to-this = Reply to this message; I will pass it on.
asked-back = { $asker } about your question, { $contact } would like to know first:
    { $text }
asker-replied = { $contacts } about the question, { $asker } adds:
    { $text }
is-it-an-answer = :grey_question: { $contact } is this your answer to the question?
    { $text }
    React with :white_check_mark: if it is, and I will pass it on; or with :x: if it is not: then I take it as a message of your own, and keep waiting for your answer.
answer-taken = :white_check_mark: Thank you, I will pass it on.
not-meant = :ok_hand: All right, I take it as a message of your own, and keep waiting for your answer to the question.
still-waiting = :ok_hand: All right, I will keep waiting for your answer.
passed-back = :speech_balloon: I have passed this on to the person who asked; I will tell you what they reply.
passed-on = :incoming_envelope: Passed on to the people who were asked.
files-not-passed-on = :paperclip: I pass on text. These files do not reach { $readers }, or not all of them: { $files }. Please send them yourself.
answer-added-to = { $asker } { $contact } adds to the answer to this question:
    { $question }

    { $text }
addition-passed-on = :incoming_envelope: Passed on to the person who asked. The answer that is kept stays as it was: if it is wrong, react to its notice with :x:.
answered-by = :white_check_mark: { $contributor } has answered this; there is nothing left to do. Thank you!
    { $question }
answer-taken-back = :leftwards_arrow_with_hook: { $contributor } has taken that answer back, so the question is open again; please reply here if you know.
    { $question }
answered-already = :information_source: Thank you! This has already been answered or is no longer needed, so your reply was not passed on.
withdrawn = :ok_hand: All right, I am no longer waiting for this answer.
not-needed = :information_source: { $asker } no longer needs an answer to this; there is nothing left to do. Thank you!
    { $question }
reply-here = Reply in this thread; I will pass it on.
reply-or-mention = Reply in this thread; I will pass it on. If I do not react to it, reply once more and mention me.

answer-arrived = { $asker } { $contributor } has answered your question:
atom-pending = :inbox_tray: The answer from { $contributor } is kept and will be used for similar questions after 24 hours:
    { $question }
    { $contributor }, react with :white_check_mark: to use it at once, or with :x: to discard it. ({ $id })
atom-flagged = :inbox_tray: The answer from { $contributor } is kept. It reads like instructions to a model, so it is not used until someone approves it:
    { $question }
    { $contributor }, react with :white_check_mark: to use it, or with :x: to discard it. ({ $id })
atom-approved = :white_check_mark: In use: it will be used for similar questions. ({ $id })
atom-rejected = :x: Deleted: it will not be used for other questions. ({ $id })
atom-unreadable = :warning: This does not count yet, because the atom's file cannot be read: { $why }
    The person who was asked can decide once the file is fixed.
atom-copied = :warning: This does not count yet, because { $why }
    The person who was asked can decide once the copy is deleted, or no longer has the `approval` of the other file.

button-like = Helpful
button-dislike = Not helpful
button-approve = Approve
button-reject = Reject
button-yes = Yes
button-no = No
button-again = Try again
not-theirs = :lock: Only the person named there can decide this.
not-theirs-again = :lock: Only the person who asked or an admin can ask this again.
not-awaited = :information_source: This has already been decided.
asked-once-more = :repeat: The model did not answer here. The question was asked again.
nothing-again = :information_source: This question is already waiting for its answer, or it is gone.

case-opened = :file_folder: Opened case { $case }. From now on, whatever I am asked in this channel belongs to it, until `/pmk close`.
    { $title }
case-shown = :file_folder: Case { $case }, open since { $since }{ $signed ->
    [no] {""}
   *[other] {" "}({ $by })
}, { $messages ->
    [one] one message
   *[other] { $messages } messages
}
    { $title }
case-closed = :white_check_mark: Closed case { $case }: { $messages ->
    [one] one message
   *[other] { $messages } messages
}, { $hypotheses ->
    [one] one hypothesis
   *[other] { $hypotheses } hypotheses
}, { $questions ->
    [one] one open question
   *[other] { $questions } open questions
}. `pmk-host case export { $case }` on the host writes it to a file.
    { $title }
case-hypothesis = Hypothesis: { $text }
case-question = Open question: { $text }
case-more = and { $count } more
case-tracked = :pushpin: pmk auto-tracked (case { $case })
case-noted-alone = Noted.
cases = :file_folder: Cases in this channel:
cases-line = { $case } ({ $state ->
    [open] open
   *[closed] closed
}, opened { $since }): { $title }
cases-none = :file_folder: This channel has no cases. `/pmk open TITLE` opens one.
case-open-already = :warning: Case { $case } is already open in this channel; `/pmk close` closes it.
    { $title }
case-none-open = :warning: No case is open in this channel. `/pmk open TITLE` opens one.
case-no-title = :warning: A case needs a title: `/pmk open TITLE`
case-title-too-long = :warning: The title has { $chars } characters; the limit is { $most }.
case-not-a-channel = :no_entry_sign: Cases belong to channels; please use this command in one.
case-failed = :x: The case cannot be read or written right now; please try again, or tell an admin if it keeps happening.
