//! Which instruction set the oracle's kernels use, chosen when the program runs.

/// An instruction set that the oracle's kernels exist for. The results are the same bits on each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    /// Whatever the crate was compiled for: on x86-64, SSE2.
    Portable,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512 F, DQ and VL.
    Avx512,
}

/// This machine lacks the instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this machine has no {}", .0.name())]
pub struct UnsupportedIsa(pub Isa);

impl Isa {
    /// All of them, the slowest first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// The fastest one of this machine.
    #[must_use]
    pub fn detect() -> Self {
        Self::ALL.into_iter().rfind(|isa| isa.is_available()).unwrap_or(Self::Portable)
    }

    /// Whether this machine has it.
    #[must_use]
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        match self {
            Self::Portable => true,
            Self::Avx2 => super::Avx2::new().is_some(),
            Self::Avx512 => super::Avx512::new().is_some(),
        }
        #[cfg(not(target_arch = "x86_64"))]
        matches!(self, Self::Portable)
    }

    /// Its usual name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "AVX2",
            Self::Avx512 => "AVX-512",
        }
    }
}
