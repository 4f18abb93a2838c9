//! The threads of a call.
//!
//! Left to itself, the pool panics where the system gives fewer threads than it wants. Here it starts on those that
//! were had, and on the first thread alone where there are none.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use super::Failure;

/// The most threads, however many are asked for: each takes memory and time before it is of any use.
const MOST: usize = 256;

/// The most threads for each that the machine runs at once.
const MOST_PER_CORE: usize = 4;

/// A thread that waits for its part in the pool, and ends without one.
struct Waiting {
    part: Sender<ThreadBuilder>,
    thread: JoinHandle<()>,
}

/// Starts the pool that everything of this process runs on.
pub(super) fn start() -> Result<(), Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let wanted = wanted(std::env::var("RAYON_NUM_THREADS").ok().as_deref(), cores);
    let mut waiting: Vec<Waiting> = (0..wanted).map_while(|_| wait()).collect();
    let spare = waiting.split_off(kept(waiting.len(), wanted));
    for Waiting { part, thread } in spare {
        drop(part);
        // It does nothing that could fail.
        let _ = thread.join();
    }
    let started = if waiting.is_empty() {
        ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()
    } else {
        let mut parts = waiting.iter().map(|waiting| &waiting.part);
        let spawn = |part| {
            let given = parts.next().and_then(|thread| thread.send(part).ok());
            given.ok_or_else(|| io::ErrorKind::WouldBlock.into())
        };
        ThreadPoolBuilder::new().num_threads(waiting.len()).spawn_handler(spawn).build_global()
    };
    started.map_err(|error| {
        let help = "allow this process more threads and more memory";
        Failure::stopped("cli::no-threads", format!("the system gave no thread to judge on: {error}"), help)
    })
}

fn wait() -> Option<Waiting> {
    let (part, given) = mpsc::channel::<ThreadBuilder>();
    let work = move || {
        if let Ok(part) = given.recv() {
            part.run();
        }
    };
    thread::Builder::new().spawn(work).ok().map(|thread| Waiting { part, thread })
}

/// How many threads to ask for: as many as the variable says, or one a core, within bounds.
fn wanted(variable: Option<&str>, cores: usize) -> usize {
    let named = variable.and_then(|text| text.parse::<usize>().ok()).filter(|count| *count > 0);
    named.unwrap_or(cores).min(cores.saturating_mul(MOST_PER_CORE)).clamp(1, MOST)
}

/// How many of the threads that were had are kept: where the system gave out, the parser needs one as well, and memory.
fn kept(had: usize, wanted: usize) -> usize {
    if had < wanted { had / 2 } else { had }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_that_are_asked_for_are_bounded() {
        assert_eq!(wanted(None, 8), 8);
        assert_eq!(wanted(Some("3"), 8), 3);
        assert_eq!(wanted(Some("5000"), 8), 32);
        assert_eq!(wanted(Some("5000"), 500), MOST);
        assert_eq!(wanted(None, 500), MOST);
        for nothing in ["0", "", "-1", "many"] {
            assert_eq!(wanted(Some(nothing), 8), 8, "{nothing}");
        }
    }

    #[test]
    fn where_the_system_gives_out_some_are_given_back() {
        assert_eq!(kept(8, 8), 8);
        assert_eq!(kept(7, 8), 3);
        assert_eq!(kept(1, 8), 0);
        assert_eq!(kept(0, 8), 0);
    }
}
