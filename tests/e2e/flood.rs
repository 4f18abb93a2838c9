//! Many errors on one long line do not flood the screen.

use crate::common::{code, copy, nucleus_gate};

#[test]
fn thousands_of_errors_on_one_line_are_counted() {
    let folder = copy();
    let path = folder.path().join("matrices/vllm-large-logit-fix.kdl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("rows 1 2 3;", &format!("rows{};", " 1".repeat(8000)))).unwrap();
    let done = nucleus_gate(folder.path(), &["check", "--unfrozen"]);
    assert_eq!(code(&done), 2);
    let shown = String::from_utf8_lossy(&done.stderr);
    assert!(shown.contains("and 7949 more"), "{}", &shown[shown.len() - 200..]);
    assert!(shown.contains("line 140, byte"), "{}", &shown[..400]);
    assert!(shown.len() < 50_000, "{} bytes", shown.len());
}
