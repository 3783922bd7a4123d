//! Parses server-sent events from network chunks.
//!
//! Our own code instead of a crate: a provider's bytes are untrusted input, so the parser must accept any of them, in
//! linear time and bounded memory. (`eventsource-stream` 0.2 panics on a byte order mark, rescans its buffer with every
//! chunk and holds back everything after an invalid byte.)

use pmk_core::text;
use thiserror::Error;

/// The maximum size of an event.
pub const MAX_EVENT_BYTES: usize = 4 << 20;
/// How much is kept of what is no event.
const MAX_UNREAD_BYTES: usize = 64 << 10;

/// One event. Ids and retry times are ignored: a model call is never resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event's name; `message` if the server gave none.
    pub name: String,
    /// Its data lines, joined by line feeds.
    pub data: String,
}

/// An event that is larger than [`MAX_EVENT_BYTES`].
#[derive(Debug, Error, PartialEq, Eq)]
#[error("an event is larger than {MAX_EVENT_BYTES} bytes")]
pub struct TooLarge;

/// Collects chunks and returns events as they become complete. Bytes that are not UTF-8 become replacement characters,
/// and an event that is cut off by the end of the stream is returned by [`end`](Decoder::end) alone.
#[derive(Debug, Default)]
pub struct Decoder {
    line: Vec<u8>,
    name: String,
    data: String,
    unread: String,
    past_first_line: bool,
    /// A line feed right after a carriage return belongs to the same line end.
    after_carriage_return: bool,
}

impl Decoder {
    /// Processes a chunk and returns the events it completes.
    ///
    /// # Errors
    /// [`TooLarge`], after which the stream is unusable.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<Event>, TooLarge> {
        let mut events = Vec::new();
        let mut rest = chunk;
        if self.after_carriage_return && !rest.is_empty() {
            self.after_carriage_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n' || byte == b'\r') {
            self.extend_line(&rest[..end])?;
            events.extend(self.end_line());
            let carriage_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if carriage_return {
                self.after_carriage_return = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.extend_line(rest)?;
        Ok(events)
    }

    /// What the end of the stream leaves of an event. The standard drops it; but some servers leave out the line that
    /// ends the last event, which then is whole.
    pub fn end(&mut self) -> Option<Event> {
        self.end_line().or_else(|| self.dispatch())
    }

    /// The lines that belong to no event: prose, or a page, of a server that only calls it a stream.
    pub fn unread(&self) -> &str {
        &self.unread
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + self.data.len() + bytes.len() > MAX_EVENT_BYTES {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = if self.past_first_line { &line } else { line.strip_prefix('\u{feff}').unwrap_or(&line) };
        self.past_first_line = true;
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.name = value.to_owned(),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            // A comment has no name.
            "id" | "retry" | "" => {}
            _ => {
                let room = MAX_UNREAD_BYTES.saturating_sub(self.unread.len() + 1);
                self.unread.push_str(text::head_bytes(line, room));
                if room > 0 {
                    self.unread.push('\n');
                }
            }
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let mut data = std::mem::take(&mut self.data);
        let mut name = std::mem::take(&mut self.name);
        data.pop()?;
        if name.is_empty() {
            name.push_str("message");
        }
        Some(Event { name, data })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<Event> {
        let mut decoder = Decoder::default();
        chunks.iter().flat_map(|chunk| decoder.push(chunk).expect("small")).collect()
    }

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.into(), data: data.into() }
    }

    #[test]
    fn names_data_and_comments() {
        let stream = b": hello\nevent: ping\ndata: {}\n\ndata:a\ndata: b\nid: 1\n\nevent: gone\n\n";
        assert_eq!(decode(&[stream]), [event("ping", "{}"), event("message", "a\nb")]);
    }

    #[test]
    fn what_is_no_event_is_kept_apart_up_to_a_limit() {
        let mut decoder = Decoder::default();
        let stream = b"Sorry: no\nevent: a\n: hello\nid: 1\nretry: 2\ndata: b\n\ndata center\n\n<p>";
        assert_eq!(decoder.push(stream), Ok(vec![event("a", "b")]));
        assert_eq!((decoder.end(), decoder.unread()), (None, "Sorry: no\ndata center\n<p>\n"));
        let page = "預算".repeat(MAX_UNREAD_BYTES) + "\n";
        for _ in 0..3 {
            assert_eq!(decoder.push(page.as_bytes()), Ok(vec![]));
            assert!(decoder.unread().len() <= MAX_UNREAD_BYTES, "{}", decoder.unread().len());
        }
    }

    #[test]
    fn every_line_end_and_a_byte_order_mark() {
        assert_eq!(
            decode(&["\u{feff}data: 1\r\r".as_bytes(), b"\ndata: 2\r", b"\n\r", b"\n"]),
            [event("message", "1"), event("message", "2")]
        );
    }

    #[test]
    fn what_the_end_cuts_off_is_returned_at_the_end_alone() {
        assert_eq!(decode(&[b"data: 1\n\ndata: 2\n"]), [event("message", "1")]);
        for (stream, last) in [
            ("data: 1\n\nevent: a\ndata: 2\n", Some(event("a", "2"))),
            ("data: 1\n\ndata: 2", Some(event("message", "2"))),
            ("data: 1\n\ndata: 2\ndata: 3\r", Some(event("message", "2\n3"))),
            ("data: 1\n\n", None),
            ("data: 1\n\nevent: a", None),
            ("", None),
        ] {
            let mut decoder = Decoder::default();
            decoder.push(stream.as_bytes()).expect("small");
            assert_eq!((decoder.end(), decoder.end()), (last, None), "{stream:?}");
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut decoder = Decoder::default();
        let chunk = vec![b'x'; MAX_EVENT_BYTES];
        assert_eq!(decoder.push(&chunk), Ok(vec![]));
        assert_eq!(decoder.push(b"x"), Err(TooLarge));
        let mut decoder = Decoder::default();
        let line = [b"data: ".as_slice(), &chunk[..MAX_EVENT_BYTES / 2], b"\n"].concat();
        assert_eq!(decoder.push(&line), Ok(vec![]));
        assert_eq!(decoder.push(&line), Err(TooLarge));
    }

    const NAMES: &[&str] = &["message_start", "content_block_delta", "ping", "error", "message"];

    /// What servers send, cut at unusual positions.
    const PIECES: &[&[u8]] = &[
        b"event: message_start\n",
        b"event: error\r\n",
        b"event:",
        b"data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n",
        b"data: {\"choices\":[{\"delta\":{\"content\":\"",
        b"data: [DONE]\n\n",
        b"data",
        b"data:\n",
        b": keep-alive\n\n",
        b"\xef\xbb\xbf",
        b"\xe4\xb8",
        b"\x8a",
        b"\n",
        b"\r",
        b"\r\n\r\n",
        b"\0",
    ];

    /// Data of some lines, none of them empty.
    fn data() -> impl Strategy<Value = String> {
        let line = prop_oneof!["[a-z{}\":, 預算🎉]{1,20}", Just("{\"type\":\"ping\"}".to_owned())];
        prop::collection::vec(line, 1..4).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_chunks_give_the_same_events(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select(b"\r\n: daeventt\xef\xbb\xbf".to_vec())], 0..300),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decode(&chunks), decode(&[&bytes]));
        }

        #[test]
        fn events_come_out_as_they_went_in(
            sent in prop::collection::vec((prop::sample::select(NAMES), data()), 0..8),
            ends in prop::sample::select(&["\n", "\r\n", "\r"][..]),
            noise in prop::option::of(prop::sample::select(&[": keep-alive", "id: 7", "retry: 10", "nonsense"][..])),
            size in 1usize..40,
        ) {
            let mut stream = String::new();
            for (name, data) in &sent {
                let lines = data.lines().map(|line| format!("data: {line}"));
                let lines = noise.iter().map(|noise| (*noise).to_owned()).chain([format!("event: {name}")]).chain(lines);
                lines.chain([String::new()]).for_each(|line| stream.extend([&line, ends]));
            }
            let chunks: Vec<&[u8]> = stream.as_bytes().chunks(size).collect();
            let wanted: Vec<Event> = sent.iter().map(|(name, data)| event(name, data)).collect();
            prop_assert_eq!(decode(&chunks), wanted);
        }

        #[test]
        fn pieces_of_real_streams_never_make_it_panic(
            pieces in prop::collection::vec(prop_oneof![
                4 => prop::sample::select(PIECES).prop_map(|piece| piece.to_vec()),
                1 => prop::collection::vec(any::<u8>(), 0..6),
            ], 0..24),
        ) {
            let chunks: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let whole = pieces.concat();
            let events = decode(&chunks);
            prop_assert_eq!(&events, &decode(&[&whole]));
            // A byte that is not UTF-8 becomes three.
            let given: usize = events.iter().map(|event| event.data.len()).sum();
            prop_assert!(given <= whole.len() * 3);
            prop_assert!(events.iter().all(|event| !event.name.is_empty() && !event.name.contains(['\n', '\r'])));
        }
    }
}
