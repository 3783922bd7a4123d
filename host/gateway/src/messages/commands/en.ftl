# What commands answer with, in English.

commands = Commands:
help-more = Without `/pmk`: `stop` (or ⏹ on the question) stops an answer, 🔁 on it asks again, and `verbose off`, `progress`, `summary` or `full` says how much of tool calls is shown here.
usage = Usage:
unknown-command = :grey_question: There is no command { $word }; `/pmk help` lists all commands
unknown-admin-command = :grey_question: Unknown admin subcommand { $word }; `/pmk admin help` lists them
argument-missing = :grey_question: { $wanted } is missing
argument-too-many = :grey_question: Unexpected argument { $word }
argument-no-person = :grey_question: I do not know { $word }: pick a person after `@`, or give an ID like `U…`
argument-no-channel = :grey_question: I do not know the channel { $word }: pick one after `#`, or give an ID like `C…`
argument-not-of = :grey_question: { $word } does not match { $wanted }
only-in-dm = :no_entry_sign: `/pmk admin` works only in a direct message (DM); nothing was done
only-admins = :no_entry_sign: For admins only; nothing was done. An admin can add you with `/pmk admin admins add`; the first one is added on the host, by the member ID, as in `pmk-host admin add U012AB3CD`
only-people = :no_entry_sign: `/pmk admin` works only if a person types it, and this message came from an app; nothing was done

about-help = show this help
about-context = show what I see of this conversation
about-policy = show which policies decide that
about-open = open a case in this channel; whatever I am asked here from then on belongs to it
about-show = show what is known about this channel's open case
about-close = close it
about-cases = list this channel's cases
about-admin-help = list the commands for admins, in a direct message
about-admin-status = show how the gateway is set up
about-admin-audience-set = set how the model speaks to a person
about-admin-audience-unset = remove a person's own audience
about-admin-audience-default = set how it speaks to everyone without an audience of their own
about-admin-audience-set-channel = set how it speaks in a channel; a person's own audience overrides it
about-admin-audience-unset-channel = remove a channel's own audience
about-admin-audience-list = list who has which audience
about-admin-escalation-add = add a person to ask about a repository, or about all that have nobody of their own
about-admin-escalation-remove = stop asking a person
about-admin-escalation-list = list who is asked about what
about-admin-atoms-list = list answers that people gave
about-admin-atoms-show = show one of them
about-admin-atoms-approve = use it for other questions at once
about-admin-atoms-reject = delete it
about-admin-admins-list = list the admins
about-admin-admins-add = make a person an admin
about-admin-admins-remove = remove an admin
about-admin-audit = show the last changes (default: 20, at most 100), including refused ones

window = :mag: In view: { $messages ->
    [one] { $messages } message
   *[other] { $messages } messages
}, { $tokens } of { $limit } tokens
window-dropped = - left out before that: { $turns ->
    [one] { $turns } turn
   *[other] { $turns } turns
}
window-older = - { $tokens } tokens in { $turns ->
    [one] { $turns } earlier turn
   *[other] { $turns } earlier turns
}
window-group = - { $tokens } tokens in { $messages ->
    [one] { $messages } message
   *[other] { $messages } messages
}: { $origin ->
    [user] { $text }
    [seed] what opened the conversation
    [summary] a summary of what came before
   *[other] { $origin }
}
policies = :clipboard: Who decides, in order:
policy-layer = - { $name } ({ $digest }): { $decides }
policy-suspension = - :warning: { $skipped }
suspension = { $skipped }; its last failure: { $reason }
skipped = { $policy } is suspended: the next one decides { $decision }; it is tried again { $left ->
    [0] at the next decision
    [one] after one more decision
   *[other] after { $left } more decisions
}
policy-of-arm = - as arm { $arm } of experiment { $experiment }

status = :gear: How the gateway is set up
    - mra workspace: { $workspace }
    - default ingest: { $ingest }
    - default audience: `{ $audience }`
    - admins: { $admins }
    - sizes of the escalation pools: { $pools }
nothing = none
default-audience = Everyone else: `{ $audience }`
contacts = Who is asked:
admins = Admins: { $list }
no-atoms = No atoms found
more-atoms = …and { $more } more; `pmk-host atoms list` on the host shows all
atom = { $id }, { $status }, { $scope }, by { $contributor }
    { $question }
atom-status = { $status ->
    [approved] approved
    [flagged] pending, flagged
   *[pending] pending
}
no-changes = No changes yet

changed-default-audience = :white_check_mark: The default audience is now { $audience }
changed-audience = :white_check_mark: The audience of { $id } is now { $audience }
changed-no-audience = :white_check_mark: { $id } no longer has an audience of its own
changed-contact = :white_check_mark: { $user } is now in the pool { $pool }
changed-no-contact = :white_check_mark: { $user } is no longer in the pool { $pool }
changed-admin = :white_check_mark: { $user } is now an admin
changed-no-admin = :white_check_mark: { $user } is no longer an admin

failed = :x: Not done: { $why }
failed-no-audience = :x: { $id } has no audience of its own
failed-no-pool = :x: There is no pool { $pool }
failed-in-pool = :x: { $user } is already in the pool { $pool }
failed-not-in-pool = :x: { $user } is not in the pool { $pool }
failed-is-admin = :x: { $user } is already an admin
failed-no-admin = :x: { $user } is not an admin
failed-blocked = :x: { $user } is on the blocklist
failed-last-admin = :x: The last admin cannot be removed; add another one first
failed-no-atom = :x: No atom ID begins with { $prefix }
failed-many-atoms = :x: More than one ID begins with { $prefix }; type more of it

refused-form = invalid argument
refused-word = no such command
refused-blocked = on the blocklist
refused-place = not in a direct message
refused-person = not an admin
refused-by-app = written by an app
