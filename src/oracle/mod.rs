//! The certified binary64 nucleus of a row of fp32 logits. Independent of policies and kernels.

mod block;
mod bucket;
mod certificate;
mod definition;
mod exp;
mod far;
mod key;
mod nucleus;
mod scan;
mod simd;
mod sum;
mod workspace;

pub use certificate::{Certificate, certificate};
pub use definition::{Certified, certify, define};
pub use key::RankKey;
pub use nucleus::{Nucleus, OracleError};
pub use simd::{Isa, UnsupportedIsa};
pub use workspace::Workspace;

use rayon::prelude::*;
use std::cell::RefCell;

thread_local! {
    /// Each thread's working memory.
    static WORKSPACE: RefCell<Workspace> = RefCell::new(Workspace::new());
}

/// The certified nucleus of every row of `logits` (\[batch, vocab\], row-major, fp32) at the matching `p` (\[batch\],
/// fp32), rows in parallel. `stop` is asked before each row: once it says true, the rows not yet begun are `None`.
pub fn nuclei(
    logits: &[f32],
    vocab: usize,
    p: &[f32],
    stop: &(dyn Fn() -> bool + Sync),
) -> Vec<Option<Result<Nucleus, OracleError>>> {
    p.par_iter()
        .enumerate()
        .map(|(row, &p)| {
            if stop() {
                return None;
            }
            let logits = logits.get(row * vocab..(row + 1) * vocab).unwrap_or_default();
            Some(nucleus(logits, p))
        })
        .collect()
}

/// The certified nucleus of one row of fp32 logits (\[vocab\]) at `p` (fp32).
///
/// # Errors
/// As [`OracleError`] says.
pub fn nucleus(logits: &[f32], p: f32) -> Result<Nucleus, OracleError> {
    WORKSPACE.with_borrow_mut(|workspace| workspace.nucleus(logits, p))
}
