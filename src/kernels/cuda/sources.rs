//! The CUDA C++ sources, as they are built into this program.

use crate::kernels::{Kernel, SourceFile};

/// What all of them include.
pub const HEADER: SourceFile =
    SourceFile { path: "kernels/numerics.cuh", text: include_str!("../../../kernels/numerics.cuh") };

/// The split top-p: stock and patch.
pub const SPLIT: SourceFile =
    SourceFile { path: "kernels/split_top_p.cu", text: include_str!("../../../kernels/split_top_p.cu") };

/// The sort reference.
pub const SORT: SourceFile =
    SourceFile { path: "kernels/sort_top_p.cu", text: include_str!("../../../kernels/sort_top_p.cu") };

/// The exact kernel.
pub const EXACT: SourceFile =
    SourceFile { path: "kernels/exact_top_p.cu", text: include_str!("../../../kernels/exact_top_p.cu") };

/// The file that a kernel stands in.
#[must_use]
pub fn of(kernel: Kernel) -> SourceFile {
    match kernel {
        Kernel::Stock | Kernel::Patch => SPLIT,
        Kernel::Sort => SORT,
        Kernel::Exact => EXACT,
    }
}
