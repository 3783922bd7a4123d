//! The one writer of standard output. Lines go through a thread of their own, so that a reader who is
//! slow holds up nobody's turn; a line counts as delivered once it is flushed.

use std::{
    io::{self, Write},
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, Sender, channel},
    },
};

use tokio::sync::oneshot;

use crate::front::FrontError;

/// Text on its way out, and who waits for it.
type Job = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// Writes text, in the order it is given.
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

    /// Why text could not be written. A reader that has seen enough is no failure.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Queues text now; the future tells when it is out.
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

/// Writes what waits in one go, then tells all who wait.
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
            // Nobody waits for it any more: the turn was given up.
            let _ = done.send(copy);
        }
        if result.is_err() {
            return;
        }
    }
}
