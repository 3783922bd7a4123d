//! Access to the outside world.

use super::{Attack, GOOD, SAME_MEMORY, forever, pruning, times};
use crate::component::{Component, DATA, DROP, Imports};

const GROUP: &str = "WASI";

/// Names of the sockets' error codes, in order; the second is `access-denied`.
macro_rules! network {
    () => {
        r#"(import "wasi:sockets/network@0.2.3" (instance $sockets-network
            (export "network" (type (sub resource)))
            (type $code (enum "unknown" "access-denied" "not-supported" "invalid-argument" "out-of-memory" "timeout"
                "concurrency-conflict" "not-in-progress" "would-block" "invalid-state" "new-socket-limit"
                "address-not-bindable" "address-in-use" "remote-unreachable" "connection-refused" "connection-reset"
                "connection-aborted" "datagram-too-large" "name-unresolvable" "temporary-resolver-failure"
                "permanent-resolver-failure"))
            (export "error-code" (type (eq $code)))
            (type $family (enum "ipv4" "ipv6"))
            (export "ip-address-family" (type (eq $family)))))
           (alias export $sockets-network "network" (type $network))
           (alias export $sockets-network "error-code" (type $socket-error))
           (alias export $sockets-network "ip-address-family" (type $ip-family))"#
    };
}

const TCP: Imports = Imports {
    text: concat!(
        network!(),
        r#"(import "wasi:sockets/tcp@0.2.3" (instance $tcp (export "tcp-socket" (type (sub resource)))))
           (alias export $tcp "tcp-socket" (type $tcp-socket))
           (import "wasi:sockets/tcp-create-socket@0.2.3" (instance $tcp-create
               (alias outer 1 $tcp-socket (type $s)) (export "tcp-socket" (type $socket (eq $s)))
               (alias outer 1 $socket-error (type $e)) (export "error-code" (type $error-here (eq $e)))
               (alias outer 1 $ip-family (type $f)) (export "ip-address-family" (type $family-here (eq $f)))
               (export "create-tcp-socket" (func (param "address-family" $family-here)
                   (result (result (own $socket) (error $error-here)))))))"#
    ),
    functions: &[("$socket", "$tcp-create", "create-tcp-socket", "(param i32 i32)")],
};

const UDP: Imports = Imports {
    text: concat!(
        network!(),
        r#"(import "wasi:sockets/udp@0.2.3" (instance $udp (export "udp-socket" (type (sub resource)))))
           (alias export $udp "udp-socket" (type $udp-socket))
           (import "wasi:sockets/udp-create-socket@0.2.3" (instance $udp-create
               (alias outer 1 $udp-socket (type $s)) (export "udp-socket" (type $socket (eq $s)))
               (alias outer 1 $socket-error (type $e)) (export "error-code" (type $error-here (eq $e)))
               (alias outer 1 $ip-family (type $f)) (export "ip-address-family" (type $family-here (eq $f)))
               (export "create-udp-socket" (func (param "address-family" $family-here)
                   (result (result (own $socket) (error $error-here)))))))"#
    ),
    functions: &[("$socket", "$udp-create", "create-udp-socket", "(param i32 i32)")],
};

const NAMES: Imports = Imports {
    text: concat!(
        network!(),
        r#"(import "wasi:sockets/instance-network@0.2.3" (instance $instance-network
               (alias outer 1 $network (type $n)) (export "network" (type $network-here (eq $n)))
               (export "instance-network" (func (result (own $network-here))))))
           (import "wasi:sockets/ip-name-lookup@0.2.3" (instance $lookup
               (export "resolve-address-stream" (type $stream (sub resource)))
               (alias outer 1 $network (type $n)) (export "network" (type $network-here (eq $n)))
               (alias outer 1 $socket-error (type $e)) (export "error-code" (type $error-here (eq $e)))
               (export "resolve-addresses" (func (param "network" (borrow $network-here)) (param "name" string)
                   (result (result (own $stream) (error $error-here)))))))"#
    ),
    functions: &[
        ("$net", "$instance-network", "instance-network", "(result i32)"),
        ("$resolve", "$lookup", "resolve-addresses", "(param i32 i32 i32 i32)"),
    ],
};

const ENVIRONMENT: Imports = Imports {
    text: r#"(import "wasi:cli/environment@0.2.3" (instance $environment
        (export "get-environment" (func (result (list (tuple string string)))))
        (export "get-arguments" (func (result (list string))))))"#,
    functions: &[
        ("$env", "$environment", "get-environment", "(param i32)"),
        ("$args", "$environment", "get-arguments", "(param i32)"),
    ],
};

const FILES: Imports = Imports {
    text: r#"(import "wasi:filesystem/types@0.2.3" (instance $files (export "descriptor" (type (sub resource)))))
        (alias export $files "descriptor" (type $descriptor))
        (import "wasi:filesystem/preopens@0.2.3" (instance $preopens
            (alias outer 1 $descriptor (type $d)) (export "descriptor" (type $descriptor-here (eq $d)))
            (export "get-directories" (func (result (list (tuple (own $descriptor-here) string)))))))"#,
    functions: &[("$directories", "$preopens", "get-directories", "(param i32)")],
};

const POLL: Imports = Imports {
    text: r#"(import "wasi:io/poll@0.2.3" (instance $io-poll
            (export "pollable" (type $pollable (sub resource)))
            (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))
            (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
        (alias export $io-poll "pollable" (type $pollable))
        (import "wasi:clocks/monotonic-clock@0.2.3" (instance $timers
            (alias outer 1 $pollable (type $p)) (export "pollable" (type $pollable-here (eq $p)))
            (export "subscribe-duration" (func (param "when" u64) (result (own $pollable-here))))))"#,
    functions: &[
        ("$timer", "$timers", "subscribe-duration", "(param i64) (result i32)"),
        ("$poll", "$io-poll", "poll", "(param i32 i32 i32)"),
        ("$block", "$io-poll", "[method]pollable.block", "(param i32)"),
    ],
};

const SUBSCRIBE: Imports = Imports {
    text: r#"(import "wasi:io/poll@0.2.3" (instance $io-poll (export "pollable" (type (sub resource)))))
        (alias export $io-poll "pollable" (type $pollable))
        (import "wasi:io/streams@0.2.3" (instance $streams
            (export "output-stream" (type $stream (sub resource)))
            (alias outer 1 $pollable (type $p)) (export "pollable" (type $pollable-here (eq $p)))
            (export "[method]output-stream.subscribe"
                (func (param "self" (borrow $stream)) (result (own $pollable-here))))))
        (alias export $streams "output-stream" (type $output-stream))
        (import "wasi:cli/stdout@0.2.3" (instance $stdout
            (alias outer 1 $output-stream (type $s)) (export "output-stream" (type $stream-here (eq $s)))
            (export "get-stdout" (func (result (own $stream-here))))))"#,
    functions: &[
        ("$output", "$stdout", "get-stdout", "(result i32)"),
        ("$subscribe", "$streams", "[method]output-stream.subscribe", "(param i32) (result i32)"),
        ("$unsubscribe", "$pollable", DROP, "(param i32)"),
    ],
};

const HTTP: Imports =
    Imports { text: r#"(import "wasi:http/outgoing-handler@0.2.3" (instance $http))"#, functions: &[] };

pub fn attacks() -> Vec<Attack> {
    // The length of a returned list is at 260; the tag of a result is at 256, and its error at 260 or 257.
    let trap_unless_empty = "(if (i32.load (i32.const 260)) (then unreachable))";
    let denied = "(if (i32.ne (i32.load8_u (i32.const 260)) (i32.const 1)) (then unreachable)) \
                  (if (i32.ne (i32.load8_u (i32.const 256)) (i32.const 1)) (then unreachable))";
    let with = |name: &str, imports: Imports, body: &str| {
        Attack::new(GROUP, name, &Component::pruning(&format!("{GOOD} {body}")).importing(imports))
    };
    let print = format!("(call $print (call $get-stderr) (i32.const {DATA}) (i32.const 4000) (i32.const 256))");
    let mut attacks = pruning(
        GROUP,
        &[
            ("ends the program, well", "(call $exit (i32.const 0))"),
            ("ends the program, badly", "(call $exit (i32.const 1))"),
            ("floods standard error", &format!("{GOOD} {}", times(900, &print))),
            (
                "floods standard error for ever",
                &format!(
                    "(local.set $i (call $get-stderr)) {}",
                    forever(&print.replace("(call $get-stderr)", "(local.get $i)"))
                ),
            ),
            ("the clock decides", "(call $remove (local.get $plan) (i32.wrap_i64 (call $now)) (i32.const 27))"),
            ("chance decides", "(call $remove (local.get $plan) (i32.wrap_i64 (call $random)) (i32.const 0))"),
            ("asks for random numbers for ever", &forever("(drop (call $random))")),
            ("asks for the time for ever", &forever("(drop (call $now))")),
        ],
    );
    attacks.extend([
        Attack::new(
            GROUP,
            "ends the program in `describe`",
            &Component::pruning("").describing("(call $exit (i32.const 0))"),
        ),
        with(
            "reads the environment and finds nothing",
            ENVIRONMENT,
            &format!("(call $env (i32.const 256)) {trap_unless_empty}"),
        ),
        with(
            "reads the arguments and finds nothing",
            ENVIRONMENT,
            &format!("(call $args (i32.const 256)) {trap_unless_empty}"),
        ),
        with(
            "looks for a folder and finds none",
            FILES,
            &format!("(call $directories (i32.const 256)) {trap_unless_empty}"),
        ),
        with(
            "opens a TCP socket and is denied",
            TCP,
            &format!("(call $socket (i32.const 0) (i32.const 256)) {denied}"),
        ),
        with(
            "opens a UDP socket and is denied",
            UDP,
            &format!("(call $socket (i32.const 0) (i32.const 256)) {denied}"),
        ),
        with(
            "looks up a name and is denied",
            NAMES,
            "(call $resolve (call $net) (i32.const 0) (i32.const 4) (i32.const 256)) \
             (if (i32.eqz (i32.load8_u (i32.const 256))) (then unreachable))",
        ),
        with(
            "looks up a name of a megabyte for ever",
            NAMES,
            &format!(
                "(local.set $i (call $net)) {}",
                forever("(call $resolve (local.get $i) (i32.const 65536) (i32.const 1000000) (i32.const 256))")
            ),
        ),
        with("waits for an hour, which takes no time", POLL, "(call $block (call $timer (i64.const 3600000000000)))"),
        Attack::new(
            GROUP,
            "polls 40,000 things at once for ever",
            &Component::pruning(&format!(
                "(local.set $plan (call $timer (i64.const 0))) {} {}",
                times(
                    40_000,
                    "(i32.store (i32.add (i32.const 300000) (i32.shl (local.get $i) (i32.const 2))) (local.get $plan))"
                ),
                "(loop $f (call $poll (i32.const 300000) (i32.const 40000) (i32.const 256)) (br $f))"
            ))
            .importing(POLL)
            .realloc("", SAME_MEMORY),
        ),
        // Its own fuel would last much longer.
        with(
            "waits for a stream and for no more, 70,000 times",
            SUBSCRIBE,
            &format!(
                "(local.set $plan (call $output)) {} unreachable",
                times(70_000, "(call $unsubscribe (call $subscribe (local.get $plan)))")
            ),
        ),
        with("sends a request over HTTP", HTTP, ""),
    ]);
    attacks
}
