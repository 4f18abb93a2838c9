//! What each fuzz target feeds its bytes to. `tests/corpus.rs` feeds the corpus to the same functions. Whatever the
//! bytes, these functions return: an error is an answer, a panic is not.

use std::sync::LazyLock;

use nucleus_gate::digest::Sha256;
use nucleus_gate::dsse::{Envelope, IN_TOTO};
use nucleus_gate::evidence::{CaseEvidence, Dispatch, KeptSet, Recording, Subject, encode_case};
use nucleus_gate::gate::ExitCode;
use nucleus_gate::inputs::{self, Inputs};
use nucleus_gate::json;
use nucleus_gate::matrix::{Matrix, Pinned, repin};
use nucleus_gate::policy::{Change, Lock, Paths, Policy, builtin, diff, lint, lint_with};
use nucleus_gate::proof::Review;
use nucleus_gate::receipt::{self, ReceiptError, Statement};
use nucleus_gate::report::{Screen, render_issues};
use nucleus_gate::syntax::{Issues, Source};

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let source = builtin("builtin:split-top-p").expect("a shipped policy");
    Policy::read(source).expect("the shipped policy is one")
});

static MATRIX: LazyLock<Matrix> = LazyLock::new(|| {
    let text = include_str!("corpus/matrix/every-node.kdl");
    Matrix::read(Source::new("every-node.kdl", text)).expect("the corpus has a good matrix")
});

static STOCK: LazyLock<Subject> = LazyLock::new(|| {
    let bytes = include_bytes!("corpus/evidence/subject.json");
    Subject::read(bytes).expect("the corpus has a good subject")
});

fn kdl<T>(bytes: &[u8], read: impl FnOnce(Source) -> Result<T, Issues>) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(issues) = read(Source::new("fuzz.kdl", text)) {
        let shown = render_issues(&issues, &Screen::plain());
        assert!(!shown.is_empty(), "a refused file says why");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "what is shown steers no terminal");
    }
}

/// A policy, and what is said of one; or a lock, which stands beside it.
pub fn policy(bytes: &[u8]) {
    kdl(bytes, |source| {
        let policy = Policy::read(source)?;
        for issue in lint(&policy) {
            assert!(!render_issues(&Issues::new(policy.source.clone(), vec![issue]), &Screen::plain()).is_empty());
        }
        assert!(diff(&policy, &policy).iter().all(|item| item.change == Change::Unchanged), "a policy is itself");
        assert_eq!(Review::new(policy.clone(), policy, Vec::new()).open().count(), 0);
        Ok(())
    });
    kdl(bytes, |source| {
        let lock = Lock::read(source)?;
        let again = Lock::read(Source::new("again", Lock::render(&lock.entries)));
        assert_eq!(again.map(|lock| lock.entries.len()).ok(), Some(lock.entries.len()), "what is written reads back");
        Ok(())
    });
}

/// A matrix, what a policy says of it, and the same cases with newly captured evidence.
pub fn matrix(bytes: &[u8]) {
    kdl(bytes, |source| {
        let matrix = Matrix::read(source)?;
        let (of_policy, of_matrix) = lint_with(&POLICY, &matrix, &Paths::new());
        for (source, list) in [(&POLICY.source, of_policy), (&matrix.source, of_matrix)] {
            let shown = render_issues(&Issues::new(source.clone(), list), &Screen::plain());
            assert!(!shown.contains(['\u{1b}', '\u{202e}']), "what is shown steers no terminal");
        }
        let pins = [&*STOCK].map(|subject| Pinned { subject, bundle: "b".to_owned(), sha256: Sha256::of(b"") });
        let again = repin(&matrix.source, "again", &pins).expect("a matrix is one");
        let again = Matrix::read(Source::new("again.kdl", again)).expect("what is written reads back");
        let names = |matrix: &Matrix| matrix.cases.iter().map(|case| case.name.value.clone()).collect::<Vec<_>>();
        assert_eq!(names(&again), names(&matrix), "no case is lost");
        Ok(())
    });
}

/// The same bytes as every kind of file that a bundle or a matrix names.
pub fn evidence(bytes: &[u8]) {
    let inputs = sample();
    if let Ok(case) = CaseEvidence::read("fuzz.safetensors", bytes, "c", &inputs) {
        assert_eq!(case.rows.len(), inputs.batch());
        for row in &case.rows {
            let vocab = row.kept.len_vocab();
            assert_eq!(KeptSet::from_lsb_bytes(&row.kept.to_lsb_bytes(), vocab).as_ref(), Ok(&row.kept));
        }
    }
    if let Ok(inputs) = inputs::read(bytes) {
        assert_eq!(
            inputs::read(&inputs::write(&inputs, "c")).map(|again| again.logits_sha256()).ok(),
            Some(inputs.logits_sha256())
        );
        let output = inputs.logits();
        if let Ok(dispatch) = Dispatch::read(r#"{"path":"p","kernels":[],"grid":[]}"#) {
            let recorded = encode_case(&Recording {
                case: "c",
                inputs: &inputs,
                output,
                dispatch: &dispatch,
                repeat_differs: None,
            });
            let recorded = recorded.expect("the shapes agree");
            assert!(CaseEvidence::read("c", &recorded, "c", &inputs).is_ok(), "what is written reads back");
        }
    }
    let _ = Subject::read(bytes);
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(dispatch) = Dispatch::read(text)
    {
        assert_eq!(Dispatch::read(&dispatch.canonical).map(|again| again.canonical).ok(), Some(dispatch.canonical));
    }
}

/// Two rows of ten logits, for which the corpus holds good evidence.
pub fn sample() -> Inputs {
    let logits = (0u8..20).map(|i| f32::from(i * 7 % 11) * 0.5).collect();
    Inputs::new(10, logits, vec![0.5, 0.9]).expect("two rows of ten")
}

/// A receipt, or an envelope of one. A changed receipt is sealed again, or the seal would be all that is tried.
pub fn receipt(bytes: &[u8]) {
    if let Ok(statement) = receipt::open(bytes) {
        assert_eq!(receipt::seal(&statement).ok().as_deref(), Some(bytes), "a receipt has one spelling");
    }
    if let Ok(statement) = json::from_slice::<Statement>(bytes) {
        let sealed = receipt::seal(&statement).expect("its types have a canonical form");
        let opened = receipt::open(&sealed);
        assert!(opened.is_ok() || matches!(opened, Err(ReceiptError::Type { .. })), "what is sealed opens");
        assert!(receipt::test_result(&statement).is_ok());
        assert_eq!(receipt::differences(&statement, &statement).ok(), Some(Vec::new()));
        let found = receipt::inconsistencies(&statement, &POLICY, &MATRIX);
        assert!(!found.is_empty(), "no run was of this policy and this matrix");
        let _ = ExitCode::from(&statement);
    }
    if let Ok(envelope) = Envelope::read(bytes) {
        let _ = envelope.unverified_payload(IN_TOTO);
    }
}
