# What commands answer with, in English.

commands = Commands:
usage = Usage:
unknown-command = :grey_question: There is no command { $word }; `/pmk help` shows all
unknown-admin-command = :grey_question: Unknown admin subcommand { $word }; `/pmk admin help` lists them
argument-missing = :grey_question: { $wanted } is missing
argument-too-many = :grey_question: { $word } is too much
argument-no-person = :grey_question: { $word } is nobody I know of: choose a person after `@`, or give an id like `U…`
argument-no-channel = :grey_question: { $word } is no channel I know of: choose one after `#`, or give an id like `C…`
argument-not-of = :grey_question: { $word } is not of { $wanted }
only-in-dm = :no_entry_sign: `/pmk admin` works in a direct message (DM) only; nothing was done
only-admins = :no_entry_sign: For admins only; nothing was done

about-help = this page
about-context = what I get to see of this conversation
about-policy = which policies decide that
about-open = opens a case in this channel: what I am asked in it from then on belongs to it
about-show = what is known of the case that is open in this channel
about-close = closes it
about-cases = the cases of this channel
about-admin-help = the commands for admins, in a direct message
about-admin-status = how the gateway is set up
about-admin-audience-set = how the model speaks to a person
about-admin-audience-unset = takes a person's own audience away
about-admin-audience-default = how it speaks to whoever has no audience of their own
about-admin-audience-set-channel = how it speaks in a channel; a person's own goes first
about-admin-audience-unset-channel = takes a channel's own audience away
about-admin-audience-list = who has which audience
about-admin-escalation-add = asks one more person about a repository, or about all that have nobody of their own
about-admin-escalation-remove = asks a person no longer
about-admin-escalation-list = who is asked about what
about-admin-atoms-list = the answers that people gave
about-admin-atoms-show = one of them
about-admin-atoms-approve = uses it for other questions at once
about-admin-atoms-reject = deletes it
about-admin-admins-list = who the admins are
about-admin-admins-add = makes a person an admin
about-admin-admins-remove = makes a person an admin no longer
about-admin-audit = the last changes, 20 unless you say otherwise, refused ones too

window = :mag: In view: { $messages ->
    [one] { $messages } message
   *[other] { $messages } messages
}, { $tokens } of { $limit } tokens
window-dropped = - left out before them: { $turns ->
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
    [summary] a summary of what was before
   *[other] { $origin }
}
policies = :clipboard: Who decides, the first that can:
policy-layer = - { $name } ({ $digest }): { $decides }
policy-of-arm = - as the arm { $arm } of the experiment { $experiment }

status = :gear: How the gateway is set up
    - mra workspace: { $workspace }
    - default ingest: { $ingest }
    - default audience: `{ $audience }`
    - admins: { $admins }
    - sizes of the escalation pools: { $pools }
nothing = none
default-audience = Everybody else: `{ $audience }`
contacts = Who is asked:
admins = Admins: { $list }
no-atoms = There are no such atoms
more-atoms = …and { $more } more; `pmk-host atoms list` on the host shows all
atom = { $id }, { $status }, { $scope }, by { $contributor }
    { $question }
atom-status = { $status ->
    [approved] approved
    [flagged] pending, flagged
   *[pending] pending
}
no-changes = Nothing was changed yet

changed-default-audience = :white_check_mark: Whoever has no audience of their own is { $audience }
changed-audience = :white_check_mark: { $id } is { $audience }
changed-no-audience = :white_check_mark: { $id } has no audience of its own any more
changed-contact = :white_check_mark: { $user } is in the pool { $pool }
changed-no-contact = :white_check_mark: { $user } is no longer in the pool { $pool }
changed-admin = :white_check_mark: { $user } is an admin
changed-no-admin = :white_check_mark: { $user } is no admin any more

failed = :x: Not done: { $why }
failed-no-audience = :x: { $id } has no audience of its own
failed-no-pool = :x: There is no pool { $pool }
failed-in-pool = :x: { $user } is in the pool { $pool } already
failed-not-in-pool = :x: { $user } is not in the pool { $pool }
failed-is-admin = :x: { $user } is an admin already
failed-no-admin = :x: { $user } is no admin
failed-blocked = :x: { $user } is on the blocklist
failed-last-admin = :x: The last admin cannot be removed; add another one first
failed-no-atom = :x: No atom's id begins with { $prefix }
failed-many-atoms = :x: More than one id begins with { $prefix }; give more of it

refused-form = not of this form
refused-word = no such command
refused-blocked = on the blocklist
refused-place = not in a direct message
refused-person = not an admin
