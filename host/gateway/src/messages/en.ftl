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
late = :alarm_clock: This answer comes { $unit ->
    [minutes] about { $count } minutes
    [hours] about { $count } hours
   *[days] about { $count } days
} late
mra-goes-on = Looking into { $repo }… step { $steps }
asking-mra = Looking into { $repo }…

trimmed = :scissors: { $turns ->
    [one] The conversation had grown too long; one older turn was left out
   *[other] The conversation had grown too long; { $turns } older turns were left out
}
compacted = :scissors: { $turns ->
    [one] The conversation had grown too long; one older turn was summed up
   *[other] The conversation had grown too long; { $turns } older turns were summed up
}
rotated = :scissors: { $turns ->
    [one] The conversation had grown too long and goes on with a summary; one earlier turn is out of view
   *[other] The conversation had grown too long and goes on with a summary; { $turns } earlier turns are out of view
}
rotated-for-admins = :recycle: `{ $session }` had grown too long and goes on in a fresh session; { $entries } messages stay in the archive
recovery-failed = :rotating_light: The prompt of `{ $session }` is too long and nothing helped; who asked got an apology instead of an answer
parked = :x: Something on our side keeps this message from being answered. It is kept{ $admins ->
    [know] , the admins know,
   *[do-not] {""}
} and will be taken up again once that is mended. You can go on writing here
parked-for-admins = :rotating_light: A message in `{ $session }` cannot be answered and is parked: { $why }. Once that is mended, `pmk-host sessions retry { $session }` takes it up again; `pmk-host sessions parked` lists all
rest-parked-for-admins = :rotating_light: A message in `{ $session }` is answered, but something beside the answer cannot be delivered and is parked: { $why }. Once that is mended, `pmk-host sessions retry { $session }` delivers it; `pmk-host sessions parked` lists all
no-tools = :warning: The server of the model { $model } takes no tools: from now on it is asked to write what it wants as text, which works less well. `pmk-host model forget` has tools tried again
policy-suspended = :rotating_light: Policy { $policy } has failed { $failures } times and is suspended for a while; the next one decides: { $reason }
policy-refused = :rotating_light: The changed policies cannot be used, the ones before still decide: { $reason }
front-refused = :rotating_light: Slack takes no new connections from me; those that are open still work, and I keep trying: { $what } (hint: { $hint })
front-accepted = :white_check_mark: Slack takes connections from me again
arm-stopped-for-failures = :no_entry: Experiment `{ $experiment }`: arm `{ $arm }` is stopped, because its policies failed in { $bad } of { $of } conversations and those of `{ $control }` in { $control-bad } of { $control-of }; its conversations go on with `{ $control }`
arm-stopped-for-overflows = :no_entry: Experiment `{ $experiment }`: arm `{ $arm }` is stopped, because prompts were too long in { $bad } of { $of } conversations and those of `{ $control }` in { $control-bad } of { $control-of }; its conversations go on with `{ $control }`
experiment-refused = :warning: Experiment `{ $experiment }` is not begun: { $why }
files-not-read = :paperclip: Not read: { $files }
file-not-read = { $name } ({ $why ->
    [no-text] not a text
    [odd-image] an image of a kind that models do not read
    [no-images] an image, and the model looks at none
    [too-large] larger than { $most } KiB
    [large-image] an image larger than { $most } KiB or 8,000 pixels
    [gone] deleted
    [elsewhere] not kept in Slack
    [not-allowed] the app may not read files: its scope `files:read`
    [off] files are not read here
   *[other] could not be fetched
})
more-files = { $count } more, because there are so many
images-refused = :paperclip: The model's server has refused the images; this answer was made without them.
between = {", "}
pair = { $name }: { $value }
told-no-words = (This message has no words of its own: what it is about stands quoted above.)
too-long = :x: The conversation is too long; please ask again in a new thread
message-too-long = :x: This message is too long: about { $tokens } tokens where { $limit } fit; please shorten or split it
cut-short = :scissors: This answer is too long for messages, and no file could be posted. The other { $chars } characters are kept; an admin can read them with `pmk-host sessions show { $key } --full`
message-too-long-by-itself = :x: This message is too long: about { $tokens } tokens; please shorten or split it
in-person = :incoming_envelope: Slack did not take this answer where you asked, so here it is.
nothing-to-read = :grey_question: There was no text to read in this message
blocked = this account is on the blocklist; its messages are not answered

verbose = { $verbosity ->
    [off] Nothing of tool calls is shown, not even that they are under way
    [progress] While a tool call is under way, how it is getting on is shown
    [summary] Each tool call is shown in one line
   *[full] Each tool call is shown with its result
}
mra-asked = :wrench: `mra ask { $repo }`: { $outcome ->
    [ok] done
   *[failed] failed
} ({ $seconds } s)

model-busy = :x: The model is too busy right now; please ask again in a while
model-account = :x: The model's account needs attention; please tell an admin
model-unknown = :x: The server does not know the model { $model }; please tell an admin
model-refused = :x: The model declined to answer this
model-timeout = :x: The model did not answer in time; please ask again
model-unreachable = :x: The model could not be reached; please ask again
model-failed = :x: The model reported an error; please ask again, or tell an admin if it goes on
stopped = :raised_hand: Stopped
erased-question = (this message was deleted)
erased-answer = (this answer was deleted)
model-silent = :x: The model wrote no answer; please ask again in other words

escalated = :raising_hand: Somebody who knows has to answer this. I have asked in the thread and will tell you as soon as there is an answer.
escalated-apart = :raising_hand: Somebody who knows has to answer this. I have asked the people responsible in direct messages and will tell you as soon as there is an answer.
used-up = :no_entry: { $kind ->
    [escalate] I have not asked anybody: for one person, and in one conversation, people are asked { $most } times an hour at most. Please try again later, or ask them yourself.
   *[other] I have not looked into the code again: for one person, and in one conversation, that is done { $most } times an hour at most. Please try again later.
}
switched-off = :no_entry: { $kind ->
    [escalate] I have not asked anybody: that is switched off here. Please ask them yourself.
   *[other] I have not looked into the code: that is switched off here.
}
proposed = :question: Somebody who knows would have to answer this. As the question is not one of yours, you see it first; it goes out once you say yes.
proposal = :question: { $asker } may I ask the people who know this, in your name?
    { $question }
proposal-react = React with :white_check_mark: to have it asked, or with :x: to drop it. After 24 hours it is dropped.
proposal-type = Type /yes to have it asked, or /no to drop it. After 24 hours it is dropped.
proposal-dropped = :x: Not asked.
proposal-expired = :hourglass: Not asked: there was no word for 24 hours. Please ask again.
already-asked = :hourglass: This thread is waiting for the answer to another question; please ask again once it is there, or in a new thread.
confirm-again = :hourglass: This thread is waiting for the answer to another question first. Yours is kept: please say yes to it again once that answer is there.
nobody-to-ask = :warning: Somebody who knows has to answer this, but nobody is set up to be asked; please tell an admin.
escalation = { $contacts } could you help with a question from { $asker }?
    { $question }
escalation-reason = Why: { $reason }
escalation-tried = Looked through before, in vain: { $atoms } answers of the knowledge base, { $mra } questions to the code.
reply-to-this = Reply to this message; I will pass it on.
asked-back = { $asker } about your question, { $contact } would like to know first:
    { $text }
asker-replied = { $contacts } about the question, { $asker } adds:
    { $text }
is-it-an-answer = :grey_question: { $contact } is this your answer to the question?
    { $text }
    React with :white_check_mark: if it is, and I pass it on; or with :x: if it is not, and I go on waiting for your answer.
answer-taken = :white_check_mark: Thank you, I pass it on.
still-waiting = :ok_hand: All right, I go on waiting for your answer.
passed-back = :speech_balloon: The person who asked has been asked; I tell you what they reply.
passed-on = :incoming_envelope: Passed on to the people who were asked.
answered-by = :white_check_mark: { $contributor } has answered this; there is nothing left to do. Thank you!
    { $question }
answered-already = :information_source: Thank you! There is an answer to this already, or it is not needed any more, so this was not passed on.
withdrawn = :ok_hand: All right, I wait for this answer no longer.
not-needed = :information_source: { $asker } does not need the answer to this any more; there is nothing left to do. Thank you!
    { $question }
reply-here = Reply in this thread; I will pass it on.
reply-with-mention = Reply in this thread and mention me; I will pass it on.

answer-arrived = { $asker } { $contributor } has answered your question:
atom-pending = :inbox_tray: The answer from { $contributor } is kept and will answer similar questions from 24 hours on:
    { $question }
    { $contributor }, react with :white_check_mark: to use it at once, or with :x: to discard it. ({ $id })
atom-flagged = :inbox_tray: The answer from { $contributor } is kept. It reads like orders to a model, so it is not used until a person approves it:
    { $question }
    { $contributor }, react with :white_check_mark: to use it, or with :x: to discard it. ({ $id })
atom-approved = :white_check_mark: In use: it will answer similar questions. ({ $id })
atom-rejected = :x: Deleted: it will not answer other questions. ({ $id })

button-like = Helpful
button-dislike = Not helpful
button-approve = Approve
button-reject = Reject
button-yes = Yes
button-no = No
button-again = Try again
not-theirs = :lock: Only the person who is named there can decide this.
not-theirs-again = :lock: Only who asked, or an admin, can have this asked once more.
not-awaited = :information_source: This is decided already.
asked-once-more = :repeat: The model did not answer here. The question was asked once more.
nothing-again = :information_source: This question waits for its answer already, or it is gone.

case-opened = :file_folder: Opened case { $case }. What I am asked in this channel from now on belongs to it, until `/pmk close`.
    { $title }
case-shown = :file_folder: Case { $case }, open since { $since }{ $signed ->
    [no] {""}
   *[other] {" "}({ $by })
}, { $messages ->
    [one] one message
   *[other] { $messages } messages
}
    { $title }
case-closed = :white_check_mark: Closed case { $case }: { $messages } messages, { $hypotheses } hypotheses, { $questions } open questions. `pmk-host case export { $case }` on the host writes it into a file.
    { $title }
case-hypothesis = Hypothesis: { $text }
case-question = Open question: { $text }
case-more = and { $count } more
case-tracked = :pushpin: pmk auto-tracked (case { $case })
case-noted-alone = Noted.
cases = :file_folder: Cases of this channel:
cases-line = { $case } ({ $state ->
    [open] open
   *[closed] closed
}, since { $since }): { $title }
cases-none = :file_folder: This channel has no cases. `/pmk open TITLE` opens one.
case-open-already = :warning: Case { $case } is open in this channel; `/pmk close` closes it.
    { $title }
case-none-open = :warning: No case is open in this channel. `/pmk open TITLE` opens one.
case-no-title = :warning: A case needs a title: `/pmk open TITLE`
case-title-too-long = :warning: The title has { $chars } characters and may have { $most }.
case-not-a-channel = :no_entry_sign: Cases belong to channels; please say this in one.
case-failed = :x: The case cannot be read or written right now; please try again, or tell an admin if it goes on.
