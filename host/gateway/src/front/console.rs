//! The console front: a terminal chat, or JSON lines when piped.
