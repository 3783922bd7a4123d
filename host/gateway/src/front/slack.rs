//! The Slack front: Socket Mode in, the Web API out.
