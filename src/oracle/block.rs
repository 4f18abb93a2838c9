//! Rows are worked on in blocks that fit the first-level cache with all that a kernel adds to them.

/// Vectors of eight in a block.
pub(super) const VECTORS: usize = 128;

/// Tokens in a block.
pub(super) const TOKENS: usize = 8 * VECTORS;

/// The weights of a block of tokens, in token order. Past the end of the row they are 0.
pub(super) type Weights = [[f64; 8]; VECTORS];
