//! Interrupts wait while files are written.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use signal_hook::consts::{SIGINT, SIGTERM};

/// What asks a process to end, and may be held.
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// While one of these lives, SIGINT and SIGTERM wait. When the last one goes, a signal that came ends the process as it
/// would have.
#[derive(Debug)]
#[must_use = "signals wait only while this lives"]
pub struct Hold(());

struct Signals {
    /// Whether a signal ends the process at once.
    free: Arc<AtomicBool>,
    /// The last signal that came, or 0.
    came: Arc<AtomicUsize>,
    /// How many holds there are.
    holds: Mutex<usize>,
}

static STATE: LazyLock<Signals> = LazyLock::new(|| {
    let (free, came) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let ignored = ignored();
    for signal in SIGNALS.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0) {
        // A signal that cannot be held ends the process at once, as it always did.
        let _ = signal_hook::flag::register_usize(signal, Arc::clone(&came), signal.unsigned_abs() as usize);
        let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&free));
    }
    Signals { free, came, holds: Mutex::new(0) }
});

/// The signals that this process was started to ignore, as a bit set: those stay ignored.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

impl Hold {
    /// Holds the signals.
    pub fn signals() -> Self {
        let mut holds = STATE.holds.lock().unwrap_or_else(PoisonError::into_inner);
        *holds += 1;
        STATE.free.store(false, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut holds = STATE.holds.lock().unwrap_or_else(PoisonError::into_inner);
        *holds = holds.saturating_sub(1);
        if *holds > 0 {
            return;
        }
        STATE.free.store(true, Ordering::SeqCst);
        let came =
            SIGNALS.into_iter().find(|signal| STATE.came.load(Ordering::SeqCst) == signal.unsigned_abs() as usize);
        if let Some(signal) = came {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}
