//! Logits from a file of someone else's: safetensors or npy, recognised by their first bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use npyz::Deserialize as _;
use safetensors::{Dtype, SafeTensors};
use serde::de::IgnoredAny;

use crate::inputs::MAX_LOGITS;
use crate::json::{self, JsonError};
use crate::tensors::MAX_HEADER;

/// What every npy file starts with.
const NPY: &[u8] = b"\x93NUMPY";

/// The most bytes of an npy file's header, and the most brackets in it.
const MAX_NPY_HEADER: usize = 1 << 16;
const MAX_NPY_BRACKETS: usize = 16;

/// Why a file's logits cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogitsError {
    #[error("not a safetensors file ({0}), and not an npy file")]
    Safetensors(#[from] safetensors::SafeTensorError),
    #[error("the safetensors header: {0}")]
    Header(#[from] JsonError),
    #[error("the safetensors header claims {claimed} bytes; {MAX_HEADER} are read at most")]
    HeaderLength { claimed: u64 },
    #[error("not a well-formed npy file: {0}")]
    Npy(String),
    #[error("no tensor `logits`; the file holds {found}")]
    Missing { found: String },
    #[error("`{name}` holds {found}; {expected} are read")]
    Dtype { name: &'static str, found: String, expected: &'static str },
    #[error("`{name}` has shape {found:?}; {expected} is read")]
    Shape { name: &'static str, found: Vec<usize>, expected: String },
    #[error("{found} logits; {MAX_LOGITS} are read at most")]
    TooMany { found: usize },
}

impl LogitsError {
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Safetensors(_) => "oracle-file-format",
            Self::Header(_) | Self::HeaderLength { .. } => "oracle-file-header",
            Self::Npy(_) => "oracle-file-npy",
            Self::Missing { .. } => "oracle-file-no-logits",
            Self::Dtype { .. } => "oracle-file-dtype",
            Self::Shape { .. } => "oracle-file-shape",
            Self::TooMany { .. } => "oracle-file-too-many",
        }
    }
}

/// Rows of logits, and perhaps a p for each.
#[derive(Debug)]
pub(super) struct Logits {
    vocab: usize,
    batch: usize,
    logits: Vec<f32>,
    p: Option<Vec<f32>>,
}

impl Logits {
    /// Reads a file's bytes.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, LogitsError> {
        if bytes.starts_with(NPY) { Self::npy(bytes) } else { Self::safetensors(bytes) }
    }

    pub(super) fn batch(&self) -> usize {
        self.batch
    }

    pub(super) fn row(&self, row: usize) -> &[f32] {
        self.logits.get(row * self.vocab..(row + 1) * self.vocab).unwrap_or_default()
    }

    pub(super) fn p(&self, row: usize) -> Option<f32> {
        self.p.as_ref().and_then(|p| p.get(row)).copied()
    }

    fn safetensors(bytes: &[u8]) -> Result<Self, LogitsError> {
        let file = SafeTensors::deserialize(bytes)?;
        has_one_reading(bytes)?;
        let Ok(view) = file.tensor("logits") else {
            let mut names = file.names();
            names.sort_unstable();
            let shown = names.iter().take(8).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let found = match names.len() {
                0 => "none".to_owned(),
                1..=8 => shown,
                more => format!("{shown} and {} more", more - 8),
            };
            return Err(LogitsError::Missing { found });
        };
        let (batch, vocab) = shape(view.shape())?;
        let logits = widen("logits", view.dtype(), view.data())?;
        let p = match file.tensor("p") {
            Err(_) => None,
            Ok(p) if p.shape() == [batch] => Some(widen("p", p.dtype(), p.data())?),
            Ok(p) => {
                let (found, expected) = (p.shape().to_vec(), format!("[{batch}]"));
                return Err(LogitsError::Shape { name: "p", found, expected });
            }
        };
        Ok(Self { vocab, batch, logits, p })
    }

    fn npy(bytes: &[u8]) -> Result<Self, LogitsError> {
        let malformed = |error: std::io::Error| LogitsError::Npy(error.to_string());
        let Some(header) = npy_header(bytes).filter(|header| is_tame(header)) else {
            return Err(LogitsError::Npy("its header is cut off, nests too deeply or claims too much".to_owned()));
        };
        // The crate keeps the last of two equal keys and passes over those that it does not know.
        let mut keys = keys(&header);
        keys.sort_unstable();
        if keys != ["descr", "fortran_order", "shape"] {
            let message = "its header's keys are not `descr`, `fortran_order` and `shape`, each once";
            return Err(LogitsError::Npy(message.to_owned()));
        }
        let mut rest = bytes;
        let parsed = npyz::NpyHeader::from_reader(&mut rest).map_err(malformed)?;
        let found: Vec<usize> =
            parsed.shape().iter().map(|length| usize::try_from(*length).unwrap_or(usize::MAX)).collect();
        let (batch, vocab) = shape(&found)?;
        if parsed.order() != npyz::Order::C && found.len() > 1 {
            return Err(LogitsError::Npy("its rows are not contiguous (fortran_order)".to_owned()));
        }
        let dtype = parsed.dtype();
        let other =
            |_| LogitsError::Dtype { name: "logits", found: dtype.descr(), expected: "'<f4' and '>f4' (float32)" };
        // Before the size: elements of another width are more or fewer bytes than the shape says.
        f32::reader(&dtype).map_err(other)?;
        if batch.checked_mul(vocab).and_then(|count| count.checked_mul(4)) != Some(rest.len()) {
            return Err(LogitsError::Npy(format!("its shape is {found:?}, but {} bytes follow", rest.len())));
        }
        let data = npyz::NpyFile::with_header(parsed, rest).data::<f32>().map_err(other)?;
        let logits = data.collect::<Result<Vec<f32>, _>>().map_err(malformed)?;
        Ok(Self { vocab, batch, logits, p: None })
    }
}

/// That the header has no key twice: the crate keeps the last of them, another reader the first.
fn has_one_reading(bytes: &[u8]) -> Result<(), LogitsError> {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else { return Ok(()) };
    let claimed = u64::from_le_bytes(*length);
    if claimed > MAX_HEADER {
        return Err(LogitsError::HeaderLength { claimed });
    }
    let header = usize::try_from(claimed).ok().and_then(|length| rest.get(..length)).unwrap_or_default();
    json::from_slice::<BTreeMap<String, IgnoredAny>>(header)?;
    Ok(())
}

/// The text of an npy file's header.
fn npy_header(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let field = |at: usize| bytes.get(at..at + 4).and_then(|field| field.first_chunk::<4>());
    let text = match (bytes.get(NPY.len()), field(8)) {
        (Some(1), Some([low, high, ..])) => bytes.get(10..10 + usize::from(u16::from_le_bytes([*low, *high]))),
        (Some(2 | 3), Some(length)) => {
            let length = u32::from_le_bytes(*length) as usize;
            bytes.get(12..).and_then(|text| text.get(..length)).filter(|_| length <= MAX_NPY_HEADER)
        }
        _ => None,
    };
    text.map(String::from_utf8_lossy)
}

/// Every quoted text of a header with a colon after it.
fn keys(header: &str) -> Vec<&str> {
    let mut keys = Vec::new();
    let mut rest = header;
    while let Some((quote, opened)) = rest.find(['\'', '"']).map(|at| rest.split_at(at).1.split_at(1)) {
        let Some((text, after)) = opened.split_once(quote) else { break };
        if after.trim_start().starts_with(':') {
            keys.push(text);
        }
        rest = after;
    }
    keys
}

/// Whether the crate can be given an npy file's header: its parser recurses, and it multiplies a shape without a check.
fn is_tame(text: &str) -> bool {
    let brackets = text.matches(['(', '[', '{']).count();
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let product = numbers.try_fold(1u64, |product, digits| product.checked_mul(digits.parse::<u64>().ok()?.max(1)));
    brackets <= MAX_NPY_BRACKETS && product.is_some()
}

/// Batch and vocabulary, within bounds.
fn shape(found: &[usize]) -> Result<(usize, usize), LogitsError> {
    let (batch, vocab) = match *found {
        [vocab] => (1, vocab),
        [batch, vocab] => (batch, vocab),
        _ => {
            let expected = "[batch, vocab] or [vocab]".to_owned();
            return Err(LogitsError::Shape { name: "logits", found: found.to_vec(), expected });
        }
    };
    let count = batch.saturating_mul(vocab.max(1));
    if count > MAX_LOGITS { Err(LogitsError::TooMany { found: count }) } else { Ok((batch, vocab)) }
}

/// The values, exactly: each of these types is a subset of fp32.
fn widen(name: &'static str, dtype: Dtype, data: &[u8]) -> Result<Vec<f32>, LogitsError> {
    let halves = || data.as_chunks().0.iter().copied().map(u16::from_le_bytes);
    match dtype {
        Dtype::F32 => Ok(data.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect()),
        Dtype::BF16 => Ok(halves().map(|bits| f32::from_bits(u32::from(bits) << 16)).collect()),
        Dtype::F16 => Ok(halves().map(half).collect()),
        other => Err(LogitsError::Dtype {
            name,
            found: other.to_string(),
            expected: "F32, BF16 and F16 (which widen exactly)",
        }),
    }
}

/// An IEEE-754 binary16 number, widened.
fn half(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let (exponent, fraction) = (u32::from(bits >> 10 & 0x1f), u32::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => return f32::from_bits(sign | (fraction as f32 / (1 << 24) as f32).to_bits()),
        0x1f => 0x7f80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;
    use npyz::WriterBuilder as _;

    fn npy<T: npyz::Serialize + npyz::AutoSerialize + Copy>(shape: &[u64], order: npyz::Order, data: &[T]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let options = npyz::WriteOptions::new().default_dtype().shape(shape).order(order);
        let mut writer = options.writer(&mut bytes).begin_nd().unwrap();
        writer.extend(data.iter().copied()).unwrap();
        writer.finish().unwrap();
        bytes
    }

    fn code(bytes: &[u8]) -> &'static str {
        Logits::read(bytes).unwrap_err().code()
    }

    #[test]
    fn npy_rows_are_read() {
        let logits = Logits::read(&npy(&[2, 3], npyz::Order::C, &[1f32, 2.0, 3.0, -4.0, 5.0, 6.0])).unwrap();
        assert_eq!((logits.batch(), logits.row(0), logits.p(0)), (2, &[1.0, 2.0, 3.0][..], None));
        assert_eq!(logits.row(1), [-4.0, 5.0, 6.0]);
        let logits = Logits::read(&npy(&[3], npyz::Order::C, &[1f32, 2.0, 3.0])).unwrap();
        assert_eq!((logits.batch(), logits.row(0)), (1, &[1.0, 2.0, 3.0][..]));
    }

    #[test]
    fn other_npy_files_are_refused() {
        let good = npy(&[2, 2], npyz::Order::C, &[1f32, 2.0, 3.0, 4.0]);
        assert_eq!(code(&npy(&[2, 2], npyz::Order::C, &[1f64, 2.0, 3.0, 4.0])), "oracle-file-dtype");
        assert_eq!(code(&npy(&[2, 2], npyz::Order::Fortran, &[1f32, 2.0, 3.0, 4.0])), "oracle-file-npy");
        assert_eq!(code(&npy(&[1, 2, 2], npyz::Order::C, &[1f32, 2.0, 3.0, 4.0])), "oracle-file-shape");
        assert_eq!(code(&good[..good.len() - 1]), "oracle-file-npy");
        assert_eq!(code(&good[..20]), "oracle-file-npy");
        assert_eq!(code(&[&good[..], &[0]].concat()), "oracle-file-npy");
        assert_eq!(code(&[&good[..], &[0; 32]].concat()), "oracle-file-npy");
        let claims = |text: &str| {
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text.as_bytes());
            bytes
        };
        let shape = |shape: &str| claims(&format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n"));
        let one = [shape("(1,)"), vec![0; 4]].concat();
        assert_eq!(Logits::read(&one).unwrap().row(0), [0.0]);
        for more in ["'shape': (1, 2)", "\"shape\" : (1,)", "'extra': 1", "'sh\\x61pe': (1,)"] {
            assert_eq!(code(&[shape(&format!("(1,), {more}")), vec![0; 8]].concat()), "oracle-file-npy", "{more}");
        }
        let half = claims("{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2), }\n");
        assert_eq!(code(&[half, vec![0; 4]].concat()), "oracle-file-dtype");
        assert_eq!(code(&shape("(99999999999, 99999999999)")), "oracle-file-npy");
        assert_eq!(code(&shape("(0, 99999999999, 99999999999)")), "oracle-file-npy");
        assert_eq!(code(&shape("(99999, 99999)")), "oracle-file-too-many");
        assert_eq!(code(&shape("(-1, 5)")), "oracle-file-npy");
        assert_eq!(code(&shape("(1000, 1000)")), "oracle-file-npy");
        assert_eq!(code(&claims(&("(".repeat(40_000) + "\n"))), "oracle-file-npy");
        assert_eq!(code(&claims(&" ".repeat(65_000))), "oracle-file-npy");
        // Version 2 has a length of four bytes, and a line's end may be one of them.
        let mut long = b"\x93NUMPY\x02\x00\x40\x9c\x0a\x00".to_vec();
        long.extend([b'('; 700_000]);
        assert_eq!(code(&long), "oracle-file-npy");
    }

    #[test]
    fn safetensors_of_each_width_are_read() {
        let view = |dtype, shape: &[usize], data: &[u8]| {
            let view = safetensors::tensor::TensorView::new(dtype, shape.to_vec(), data).unwrap();
            safetensors::serialize([("logits", view)], None).unwrap()
        };
        let logits = Logits::read(&view(Dtype::BF16, &[1, 2], &[0x80, 0x3f, 0x40, 0xc0])).unwrap();
        assert_eq!(logits.row(0), [1.0, -3.0]);
        let logits = Logits::read(&view(Dtype::F16, &[2, 1], &[0x00, 0x3c, 0x01, 0x80])).unwrap();
        assert_eq!((logits.row(0), logits.row(1)), (&[1.0][..], &[-(2f32.powi(-24))][..]));
        assert_eq!(code(&view(Dtype::F64, &[1, 1], &[0; 8])), "oracle-file-dtype");
        assert_eq!(code(&view(Dtype::F32, &[1, 1, 1], &[0; 4])), "oracle-file-shape");
        assert_eq!(code(b"neither"), "oracle-file-format");
        let other = safetensors::tensor::TensorView::new(Dtype::F32, vec![1], &[0; 4]).unwrap();
        assert_eq!(code(&safetensors::serialize([("scores", other)], None).unwrap()), "oracle-file-no-logits");
    }

    #[test]
    fn a_safetensors_header_has_one_reading() {
        let file = |header: &str, data: &[u8]| [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat();
        let entry = r#""logits":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
        assert_eq!(Logits::read(&file(&format!("{{{entry}}}"), &[0; 4])).unwrap().row(0), [0.0]);
        assert_eq!(code(&file(&format!("{{{entry},{entry}}}"), &[0; 4])), "oracle-file-header");
        let padded = format!("{{{entry}}}{}", " ".repeat(1 << 20));
        assert_eq!(code(&file(&padded, &[0; 4])), "oracle-file-header");
    }

    #[test]
    fn halves_widen_exactly() {
        let known = [
            (0x0000, 0.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
            (0x0400, 6.103_515_6e-5),
            (0xfc00, f32::NEG_INFINITY),
        ];
        for (bits, number) in known {
            assert_eq!(half(bits), number, "{bits:#06x}");
        }
        assert!(half(0x7e00).is_nan());
        assert_eq!(half(0x8000).to_bits(), (-0.0f32).to_bits());
    }
}
