//! The only writer of standard output. Lines are written by a separate thread, so that a slow reader
//! delays nobody's turn; a line counts as delivered once it is flushed.

use std::{
    io::{self, Write},
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, Sender, channel},
    },
};

use tokio::sync::oneshot;

use crate::front::FrontError;

/// A text to write, and the channel to report the result to.
type Job = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// Writes texts, in the given order.
pub(super) struct Output {
    jobs: Sender<Job>,
    failure: Arc<OnceLock<String>>,
}

impl Output {
    /// Starts the writer.
    pub(super) fn start() -> io::Result<Output> {
        let (jobs, waiting) = channel();
        let failure = Arc::default();
        let failed = Arc::clone(&failure);
        std::thread::Builder::new().name("console-output".into()).spawn(move || write_all(&waiting, &failed))?;
        Ok(Output { jobs, failure })
    }

    /// Returns why text could not be written. A reader that has stopped reading is not a failure.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Queues a text now; the future completes once it is written.
    pub(super) fn write(&self, text: Vec<u8>) -> impl Future<Output = Result<(), FrontError>> + use<> {
        let (done, written) = oneshot::channel();
        let queued = self.jobs.send((text, done)).is_ok();
        async move {
            match written.await {
                Ok(Ok(())) if queued => Ok(()),
                _ => Err(FrontError::Closed),
            }
        }
    }
}

/// Writes all waiting texts at once, then reports to all that wait.
fn write_all(jobs: &Receiver<Job>, failure: &OnceLock<String>) {
    let mut stdout = io::stdout().lock();
    while let Ok(first) = jobs.recv() {
        let batch: Vec<Job> = std::iter::once(first).chain(jobs.try_iter()).collect();
        let result = batch.iter().try_for_each(|(text, _)| stdout.write_all(text)).and_then(|()| stdout.flush());
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            failure.get_or_init(|| error.to_string());
        }
        for (_, done) in batch {
            let copy = match &result {
                Ok(()) => Ok(()),
                Err(error) => Err(io::Error::from(error.kind())),
            };
            // The receiver may be gone: the turn was given up.
            let _ = done.send(copy);
        }
        if result.is_err() {
            return;
        }
    }
}
