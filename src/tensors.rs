//! Safetensors files: read strictly, written to the same bytes every time.

use std::collections::BTreeMap;

use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

use crate::json::{self, JsonError};

/// The largest header read, in bytes. Ours are about a kilobyte.
pub const MAX_HEADER: u64 = 1 << 20;

/// The most tensors a file may hold. Ours hold three at most.
pub const MAX_TENSORS: usize = 16;

/// Why a safetensors file is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum TensorError {
    /// The file is shorter than its length field, or its header claims more than the file or [`MAX_HEADER`] holds.
    #[error(
        "the header claims {claimed} bytes; the file holds {available} after its length field, {MAX_HEADER} are read at most"
    )]
    HeaderLength {
        /// The length field.
        claimed: u64,
        /// Bytes after the length field.
        available: u64,
    },
    /// The file ends before its header.
    #[error("the file has {length} bytes; the length of its header alone takes 8")]
    NoHeader {
        /// Its bytes.
        length: usize,
    },
    /// The header is no JSON object, or has a key twice.
    #[error("the header: {0}")]
    HeaderJson(#[from] JsonError),
    /// Names, shapes, types and offsets do not describe the bytes that follow.
    #[error("the header does not describe the file: {0}")]
    Layout(#[from] safetensors::SafeTensorError),
    /// More tensors than [`MAX_TENSORS`].
    #[error("{found} tensors; {MAX_TENSORS} are read at most")]
    TooMany {
        /// Tensors named in the header.
        found: usize,
    },
    /// A tensor that must be there is not.
    #[error("no tensor `{tensor}`")]
    Missing {
        /// Its name.
        tensor: &'static str,
    },
    /// A tensor that has no place in the file.
    #[error("an unexpected tensor `{tensor}`")]
    Unexpected {
        /// Its name, as in the file.
        tensor: String,
    },
    /// A tensor of another element type.
    #[error("tensor `{tensor}` is {found}, expected {expected}")]
    Dtype {
        /// Its name.
        tensor: &'static str,
        /// The type it must have.
        expected: Dtype,
        /// The type it has.
        found: Dtype,
    },
    /// A tensor of another shape.
    #[error("tensor `{tensor}` has shape {found:?}, expected {expected}")]
    Shape {
        /// Its name.
        tensor: &'static str,
        /// The shape it must have, in words or numbers.
        expected: String,
        /// The shape it has.
        found: Vec<usize>,
    },
}

impl TensorError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::HeaderLength { .. } | Self::NoHeader { .. } => "tensor-header-length",
            Self::HeaderJson(_) => "tensor-header-json",
            Self::Layout(_) => "tensor-layout",
            Self::TooMany { .. } => "tensor-too-many",
            Self::Missing { .. } => "tensor-missing",
            Self::Unexpected { .. } => "tensor-unexpected",
            Self::Dtype { .. } => "tensor-dtype",
            Self::Shape { .. } => "tensor-shape",
        }
    }
}

/// A parsed safetensors file over the bytes that hold it.
#[derive(Debug)]
pub struct TensorFile<'a> {
    tensors: SafeTensors<'a>,
    metadata: BTreeMap<String, String>,
}

impl<'a> TensorFile<'a> {
    /// Parses `bytes`. Nothing is allocated for what a header claims: its length is bounded by the file's and by
    /// [`MAX_HEADER`], and tensors are views into `bytes`, which their offsets must cover exactly.
    ///
    /// # Errors
    /// [`TensorError::HeaderLength`], [`TensorError::NoHeader`], [`TensorError::HeaderJson`], [`TensorError::Layout`], [`TensorError::TooMany`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, TensorError> {
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or(TensorError::NoHeader { length: bytes.len() })?;
        let (claimed, available) = (u64::from_le_bytes(*length), rest.len() as u64);
        let header = usize::try_from(claimed.min(MAX_HEADER + 1)).ok().and_then(|length| rest.get(..length));
        let header =
            header.filter(|_| claimed <= MAX_HEADER).ok_or(TensorError::HeaderLength { claimed, available })?;
        // The crate keeps the last of two equal keys; a header must have one reading.
        let header: BTreeMap<String, Value> = json::from_slice(header)?;
        let found = header.keys().filter(|key| *key != "__metadata__").count();
        if found > MAX_TENSORS {
            return Err(TensorError::TooMany { found });
        }
        let (_, parsed) = SafeTensors::read_metadata(bytes)?;
        let metadata = parsed.metadata().iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
        Ok(Self { tensors: SafeTensors::deserialize(bytes)?, metadata })
    }

    /// A metadata entry of the header.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }

    /// Whether the file holds tensor `name`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.tensors.tensor(name).is_ok()
    }

    /// That the file holds no tensor but `names`.
    ///
    /// # Errors
    /// [`TensorError::Unexpected`] names the first other one in name order.
    pub fn only(&self, names: &[&str]) -> Result<(), TensorError> {
        let others = self.tensors.names().into_iter().filter(|name| !names.contains(name));
        others.min().map_or(Ok(()), |name| Err(TensorError::Unexpected { tensor: name.to_owned() }))
    }

    /// The shape and the little-endian bytes of tensor `tensor`, which must be of type `expected`.
    fn typed(&self, tensor: &'static str, expected: Dtype) -> Result<(Vec<usize>, &'a [u8]), TensorError> {
        let view = self.tensors.tensor(tensor).map_err(|_| TensorError::Missing { tensor })?;
        match view.dtype() {
            found if found != expected => Err(TensorError::Dtype { tensor, expected, found }),
            _ => Ok((view.shape().to_vec(), view.data())),
        }
    }

    fn shaped(&self, tensor: &'static str, dtype: Dtype, shape: &[usize]) -> Result<&'a [u8], TensorError> {
        match self.typed(tensor, dtype)? {
            (found, data) if found == shape => Ok(data),
            (found, _) => Err(TensorError::Shape { tensor, expected: format!("{shape:?}"), found }),
        }
    }

    /// The bytes of the u8 tensor `tensor` of exactly `shape`.
    ///
    /// # Errors
    /// [`TensorError::Missing`], [`TensorError::Dtype`] or [`TensorError::Shape`].
    pub fn u8(&self, tensor: &'static str, shape: &[usize]) -> Result<&'a [u8], TensorError> {
        self.shaped(tensor, Dtype::U8, shape)
    }

    /// The values of the u32 tensor `tensor` of exactly `shape`.
    ///
    /// # Errors
    /// As [`Self::u8`].
    pub fn u32(&self, tensor: &'static str, shape: &[usize]) -> Result<Vec<u32>, TensorError> {
        Ok(words(self.shaped(tensor, Dtype::U32, shape)?).map(u32::from_le_bytes).collect())
    }

    /// The values of the f32 tensor `tensor` of exactly `shape`.
    ///
    /// # Errors
    /// As [`Self::u8`].
    pub fn f32(&self, tensor: &'static str, shape: &[usize]) -> Result<Vec<f32>, TensorError> {
        Ok(words(self.shaped(tensor, Dtype::F32, shape)?).map(f32::from_le_bytes).collect())
    }

    /// Rows, columns and values of the f32 matrix `tensor`.
    ///
    /// # Errors
    /// As [`Self::u8`]; any shape of two dimensions is accepted.
    pub fn f32_matrix(&self, tensor: &'static str) -> Result<(usize, usize, Vec<f32>), TensorError> {
        let (found, data) = self.typed(tensor, Dtype::F32)?;
        match *found.as_slice() {
            [rows, columns] => Ok((rows, columns, words(data).map(f32::from_le_bytes).collect())),
            _ => Err(TensorError::Shape { tensor, expected: "two dimensions".to_owned(), found }),
        }
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = [u8; 4]> + '_ {
    bytes.as_chunks().0.iter().copied()
}

/// A tensor to write: name, element type, shape, little-endian bytes.
#[derive(Debug)]
pub struct Tensor<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its element type.
    pub dtype: Dtype,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its elements in row-major order, little-endian.
    pub data: Vec<u8>,
}

/// A safetensors file of `tensors`, in the order given, with `metadata`. The same arguments give the same bytes (the
/// crate's own writer takes its metadata from a hash map, in an order that changes from run to run). Tensors of wider
/// types must come first, so that each starts at a multiple of its element size.
#[must_use]
pub fn encode(metadata: &BTreeMap<&str, String>, tensors: &[Tensor<'_>]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    header.insert("__metadata__".to_owned(), json!(metadata));
    let mut end = 0;
    for tensor in tensors {
        let start = end;
        end += tensor.data.len();
        let entry = json!({"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [start, end]});
        header.insert(tensor.name.to_owned(), entry);
    }
    let mut header = Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut out = Vec::with_capacity(8 + header.len() + end);
    out.extend((header.len() as u64).to_le_bytes());
    out.extend(header);
    tensors.iter().for_each(|tensor| out.extend(&tensor.data));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    fn code(bytes: &[u8]) -> &'static str {
        TensorFile::parse(bytes).expect_err("must be refused").code()
    }

    #[test]
    fn what_is_written_is_read_and_written_the_same_again() {
        let write = || {
            let metadata = BTreeMap::from([("case", "c".to_owned()), ("batch", "2".to_owned())]);
            let nan = Tensor { name: "nan", dtype: Dtype::U32, shape: vec![2], data: vec![1, 0, 0, 0, 2, 0, 0, 0] };
            let kept = Tensor { name: "kept", dtype: Dtype::U8, shape: vec![2, 1], data: vec![5, 6] };
            encode(&metadata, &[nan, kept])
        };
        let bytes = write();
        assert_eq!(bytes, write());
        let file = TensorFile::parse(&bytes).unwrap();
        assert_eq!(file.metadata("case"), Some("c"));
        assert_eq!(file.u32("nan", &[2]).unwrap(), [1, 2]);
        assert_eq!(file.u8("kept", &[2, 1]).unwrap(), [5, 6]);
        assert!(file.only(&["nan", "kept"]).is_ok());
        assert_eq!(file.only(&["nan"]).unwrap_err().code(), "tensor-unexpected");
        assert_eq!(file.u8("mask", &[2]).unwrap_err().code(), "tensor-missing");
        assert_eq!(file.u32("kept", &[2, 1]).unwrap_err().code(), "tensor-dtype");
        assert_eq!(file.u8("kept", &[1, 2]).unwrap_err().code(), "tensor-shape");
    }

    #[test]
    fn claims_are_bounded_before_anything_is_allocated() {
        assert_eq!(code(b""), "tensor-header-length");
        assert_eq!(code(&[0; 7]), "tensor-header-length");
        let mut claim = vec![b'{'; 1024];
        for claimed in [1u64 << 30, u64::MAX, 1017] {
            claim[..8].copy_from_slice(&claimed.to_le_bytes());
            assert_eq!(code(&claim), "tensor-header-length");
        }
        let many: Vec<String> =
            (0..17).map(|i| format!(r#""t{i}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#)).collect();
        assert_eq!(code(&file(&format!("{{{}}}", many.join(",")), b"")), "tensor-too-many");
    }

    #[test]
    fn headers_have_one_reading_and_cover_the_file() {
        let entry =
            |shape: &str, offsets: &str| format!(r#""a":{{"dtype":"U8","shape":{shape},"data_offsets":{offsets}}}"#);
        let good = file(&format!("{{{}}}", entry("[2]", "[0,2]")), b"xy");
        assert!(TensorFile::parse(&good).is_ok());
        let twice = format!("{{{},{}}}", entry("[2]", "[0,2]"), entry("[2]", "[0,2]"));
        assert_eq!(code(&file(&twice, b"xy")), "tensor-header-json");
        let huge = entry("[4294967296,4294967296]", "[0,2]");
        for entry in [entry("[2]", "[1,3]"), entry("[3]", "[0,2]"), entry("[2]", "[2,0]"), huge] {
            assert_eq!(code(&file(&format!("{{{entry}}}"), b"xy")), "tensor-layout", "{entry}");
        }
        assert_eq!(code(&file(&format!("{{{}}}", entry("[2]", "[0,2]")), b"xyz")), "tensor-layout");
    }
}
