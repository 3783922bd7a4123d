
# The chat at a terminal.

chat-begin = pmk-host { $version }: type a question and press Enter; it remembers the conversation
chat-model = model   { $model }, { $window }-token window
chat-model-sim = model   sim, a stand-in that quotes you; `pmk-host init` sets up a real one
chat-policy = policy  { $policies }; see `pmk-host demo`
chat-keys = /help lists commands, /quit leaves
chat-help = /help      show this help
    /context   show what the model sees of this conversation
    /policy    show which policies decide that
    /pmk       more gateway commands: see `/pmk help`
    /yes /no   answer the last question that is waiting for your decision
    stop       stop the current answer
    /quit      leave (also `exit`, Ctrl-D, or Ctrl-C twice); pending answers still arrive
    Ctrl-C     clear the line
    The dim line below an answer shows which policy decided and how much of the model's limit was used.
chat-unknown = Unknown command { $word }; /help lists commands
chat-too-many = Unexpected argument { $word }; /help lists commands
chat-leave = Press Ctrl-C again to leave
chat-stopped = The gateway is being stopped: what you are typing will not be sent
chat-waits = :hourglass_flowing_sand: the model has not answered yet ({ $seconds } s)
chat-no-word = Nothing is waiting for your decision
chat-no-effect = Your decision had no effect: { $error }
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
