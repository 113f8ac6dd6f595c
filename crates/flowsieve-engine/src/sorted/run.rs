//! Items in a temporary file, each with its length before it. The file has no name, so it is gone
//! when the program is, however that ends.

use crate::memory::MEMORY_REFUSED;
use crate::untrusted::Shown;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

/// Bytes gathered before they are written, or read at once.
const BUFFER: usize = 64 << 10;

/// Items in a temporary file.
#[derive(Debug)]
pub(super) struct Run {
    file: File,
    items: u64,
}

/// Writes items to a temporary file.
pub(super) struct RunWriter {
    out: BufWriter<File>,
    items: u64,
    item: Vec<u8>,
}

/// Items in order.
pub(super) type Source<'a, T> = Box<dyn Iterator<Item = io::Result<T>> + 'a>;

impl Run {
    pub(super) fn read<'a, T: DeserializeOwned + 'a>(mut self) -> io::Result<Source<'a, T>> {
        self.file.rewind().map_err(|error| explained(&error))?;
        ask_for_buffer()?;
        let mut from = BufReader::with_capacity(BUFFER, self.file);
        let mut item = Vec::new();
        Ok(Box::new((0..self.items).map(move |_| {
            fill(&mut item, &mut from).map_err(|error| explained(&error))?;
            postcard::from_bytes(&item).map_err(io::Error::other)
        })))
    }
}

impl RunWriter {
    pub(super) fn new() -> io::Result<Self> {
        let file = tempfile::tempfile().map_err(|error| explained(&error))?;
        ask_for_buffer()?;
        Ok(Self { out: BufWriter::with_capacity(BUFFER, file), items: 0, item: Vec::new() })
    }

    pub(super) fn write(&mut self, item: &impl Serialize) -> io::Result<()> {
        self.item.clear();
        let bytes = postcard::to_extend(item, std::mem::take(&mut self.item));
        self.item = bytes.map_err(io::Error::other)?;
        let length = u32::try_from(self.item.len()).map_err(io::Error::other)?;
        self.out
            .write_all(&length.to_le_bytes())
            .and_then(|()| self.out.write_all(&self.item))
            .map_err(|error| explained(&error))?;
        self.items += 1;
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<Run> {
        let file = self.out.into_inner();
        Ok(Run { file: file.map_err(|error| explained(&error.into_error()))?, items: self.items })
    }
}

/// Reads the bytes of the next item.
fn fill(item: &mut Vec<u8>, from: &mut impl Read) -> io::Result<()> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    item.resize(u32::from_le_bytes(length) as usize, 0);
    from.read_exact(item)
}

/// Whether there is memory for a buffer: files are used where memory is short, and a buffer that
/// the standard library does not get ends the program.
fn ask_for_buffer() -> io::Result<()> {
    let asked = Vec::<u8>::new().try_reserve_exact(BUFFER);
    asked.map_err(|_| refused())
}

/// Memory was refused.
pub(super) fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, MEMORY_REFUSED)
}

/// The error, with what can be done.
fn explained(error: &io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    io::Error::new(
        error.kind(),
        format!(
            "what does not fit into memory goes to a temporary file in {}, which failed ({error}); set TMPDIR to a folder with room, or raise `ulimit -n`",
            folder.shown()
        ),
    )
}
