//! The fault zoo: kinds of fault that public reports describe in real top-p masks, each as a small model kernel, and the
//! exact kernel. The zoo proves that a policy can fail, measures what a matrix is able to see, and prices a change of a
//! policy. One file a fault; its doc comment is the page that `nucleus-gate explain` prints.

mod batch;
#[cfg(test)]
mod testing;

pub use batch::{Batch, Output, Row};

/// A model kernel.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// Its name.
    pub name: &'static str,
    /// Runs it for the `call`-th time (from 0) on the same batch.
    pub run: fn(batch: &Batch<'_>, call: u32) -> Output,
    source: &'static str,
}

impl Model {
    /// A model with the source whose doc comment explains it.
    pub(super) const fn new(name: &'static str, run: fn(&Batch<'_>, u32) -> Output, source: &'static str) -> Self {
        Self { name, run, source }
    }

    /// What it does, in one paragraph.
    #[must_use]
    pub fn summary(&self) -> String {
        let page = self.page();
        let body = page.strip_prefix(&format!("# {}\n\n", self.name)).unwrap_or(&page);
        body.split("\n\n").next().unwrap_or_default().replace('\n', " ").trim().to_owned()
    }

    /// The page that explains it, in Markdown.
    #[must_use]
    pub fn page(&self) -> String {
        crate::rules::page(self.source)
    }

    /// The fault of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        FAULTS.iter().find(|fault| fault.name == name)
    }
}

mod exact;

/// The kernel without a fault.
pub const EXACT: Model = Model::new("exact", exact::run, include_str!("exact.rs"));

macro_rules! zoo {
    ($($module:ident: $name:literal),* $(,)?) => {
        $(mod $module;)*

        /// Every fault of the zoo.
        pub const FAULTS: &[Model] = &[
            $(Model::new($name, $module::run, include_str!(concat!(stringify!($module), ".rs"))),)*
        ];
    };
}

zoo! {
    crossing_token: "crossing-token-dropped",
    one_too_many: "one-token-too-many",
    complement_rounding: "complement-rounding",
    logit_threshold: "logit-threshold",
    tie_band: "absolute-tie-band",
    all_ties: "all-boundary-ties-kept",
    unstable_ties: "unstable-tie-order",
    row_stride: "row-stride-ignored",
    bf16_p: "p-rounded-to-bf16",
    fp32_sum: "fp32-sum-never-reaches-p",
    faint_tail: "p-one-zeroes-a-faint-tail",
    greedy_at_one: "p-one-becomes-greedy",
    ascending_order: "ascending-order",
    not_a_prefix: "not-a-prefix",
    nan_neighbour: "nan-contaminates-neighbour",
    zero_mask: "masked-with-zero",
    tile_duplicates: "duplicates-not-carried",
    batch_dispatch: "dispatch-by-batch-size",
    temperature_after: "temperature-after-mask",
    bf16_sum: "bf16-sum",
    partial_tile: "partial-tile-skipped",
    call_dependent_ties: "ties-change-between-calls",
}

#[cfg(test)]
mod tests {
    use super::{EXACT, FAULTS};

    #[test]
    fn every_page_names_its_fault_and_its_report() {
        assert_eq!(FAULTS.len(), 22);
        for fault in FAULTS {
            let page = fault.page();
            assert!(page.starts_with(&format!("# {}\n", fault.name)), "{}", fault.name);
            assert!(page.contains("\nReported: "), "{}", fault.name);
        }
        assert!(EXACT.page().starts_with("# exact\n"));
        let mut names: Vec<_> = FAULTS.iter().map(|fault| fault.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FAULTS.len());
    }
}
