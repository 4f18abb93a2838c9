//! Inputs as a safetensors file.

use std::collections::BTreeMap;

use safetensors::Dtype;

use super::{Inputs, InputsError};
use crate::digest::Sha256;
use crate::tensors::{Tensor, TensorFile, encode};

/// Reads `logits` (f32, \[batch, vocab\]) and `p` (f32, \[batch\]) from the bytes of a safetensors file that holds nothing
/// else. Digests that its header states must be those of the tensors.
///
/// # Errors
/// As [`InputsError`] says.
pub fn read(bytes: &[u8]) -> Result<Inputs, InputsError> {
    let file = TensorFile::parse(bytes)?;
    file.only(&["logits", "p"])?;
    let (batch, vocab, logits) = file.f32_matrix("logits")?;
    let inputs = Inputs::new(vocab, logits, file.f32("p", &[batch])?)?;
    stated(&file, "logits", "logits_sha256", inputs.logits_sha256)?;
    stated(&file, "p", "p_sha256", inputs.p_sha256)?;
    Ok(inputs)
}

fn stated(file: &TensorFile<'_>, tensor: &'static str, key: &str, found: Sha256) -> Result<(), InputsError> {
    match file.metadata(key) {
        Some(stated) if Sha256::parse(stated) != Some(found) => {
            Err(InputsError::Header { tensor, stated: stated.to_owned(), found })
        }
        Some(_) | None => Ok(()),
    }
}

/// The safetensors file of `inputs`, with the case's name and the digests in its header. The same inputs give the same
/// bytes.
#[must_use]
pub fn write(inputs: &Inputs, case_name: &str) -> Vec<u8> {
    let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let metadata = BTreeMap::from([
        ("case", case_name.to_owned()),
        ("logits_sha256", inputs.logits_sha256.to_string()),
        ("p_sha256", inputs.p_sha256.to_string()),
    ]);
    let shape = vec![inputs.batch(), inputs.vocab];
    let logits = Tensor { name: "logits", dtype: Dtype::F32, shape, data: bytes(&inputs.logits) };
    let p = Tensor { name: "p", dtype: Dtype::F32, shape: vec![inputs.batch()], data: bytes(&inputs.p) };
    encode(&metadata, &[logits, p])
}
