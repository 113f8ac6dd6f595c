//! Files that are read in parts: each block has its checksum, which is compared when it is read.
//!
//! ```text
//!     content, in blocks of 4096 bytes │ checksum of each block, 8 bytes
//! ```
//!
//! The file's mark is its length and the checksum of the checksums.

use super::IndexError;
use super::disk::{self, FileMark};
use crate::filters::Words;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Bytes that have one checksum.
const BLOCK: u64 = 4096;

/// Bytes of a checksum.
const CHECKSUM: u64 = 8;

/// Appends the checksums of the content's blocks, and returns the file's mark.
pub(super) fn seal(content: &mut Vec<u8>) -> FileMark {
    let checksums = content.chunks(BLOCK as usize).map(FileMark::new);
    let checksums = checksums.flat_map(|mark| mark.checksum.to_le_bytes());
    let checksums: Vec<u8> = checksums.collect();
    content.extend(&checksums);
    FileMark { bytes: content.len() as u64, checksum: FileMark::new(&checksums).checksum }
}

/// A file whose blocks are read when they are needed.
pub(super) struct Blocks {
    path: PathBuf,
    file: RefCell<File>,
    /// Bytes of the content.
    pub(super) length: u64,
    checksums: Vec<u8>,
    read: RefCell<HashMap<u64, Rc<[u8]>>>,
}

impl Blocks {
    /// Opens a file that should have this mark.
    pub(super) fn open(path: &Path, mark: FileMark) -> Result<Self, IndexError> {
        let mut file = disk::open(path)?;
        let found = file.metadata().map_err(IndexError::io(path))?.len();
        mark.check_length(path, found)?;
        let blocks = found.div_ceil(BLOCK + CHECKSUM);
        let length = found.saturating_sub(blocks * CHECKSUM);
        let mut checksums = disk::room_for(path, found - length)?;
        checksums.resize((found - length) as usize, 0);
        let read = file.seek(SeekFrom::Start(length));
        read.and_then(|_| file.read_exact(&mut checksums)).map_err(IndexError::io(path))?;
        if FileMark::new(&checksums).checksum != mark.checksum {
            return Err(IndexError::damaged(path, disk::OTHER_CHECKSUM));
        }
        Ok(Self {
            path: path.to_owned(),
            file: RefCell::new(file),
            length,
            checksums,
            read: RefCell::default(),
        })
    }

    /// Reads all of the content.
    pub(super) fn content(&self) -> Result<Vec<u8>, IndexError> {
        let mut content = disk::room_for(&self.path, self.length)?;
        for number in 0..self.length.div_ceil(BLOCK) {
            content.extend(&*self.read_block(number)?);
        }
        Ok(content)
    }

    /// Returns a block, and keeps it: the words that a query needs are close together.
    fn block(&self, number: u64) -> Result<Rc<[u8]>, IndexError> {
        if let Some(block) = self.read.borrow().get(&number) {
            return Ok(Rc::clone(block));
        }
        let block: Rc<[u8]> = self.read_block(number)?.into();
        self.read.borrow_mut().insert(number, Rc::clone(&block));
        Ok(block)
    }

    fn read_block(&self, number: u64) -> Result<Vec<u8>, IndexError> {
        let start = number * BLOCK;
        let mut block = vec![0; (self.length - start).min(BLOCK) as usize];
        let mut file = self.file.borrow_mut();
        let read = file.seek(SeekFrom::Start(start));
        read.and_then(|_| file.read_exact(&mut block)).map_err(IndexError::io(&self.path))?;
        let checksum = FileMark::new(&block).checksum.to_le_bytes();
        if self.checksums.as_chunks::<8>().0[number as usize] != checksum {
            return Err(IndexError::damaged(
                &self.path,
                format!("the checksum of the block at offset {start} is another one"),
            ));
        }
        Ok(block)
    }
}

impl Words for &Blocks {
    type Error = IndexError;

    fn word(&self, at: u64) -> Result<u64, IndexError> {
        let mut word = [0; 8];
        let end = at.saturating_add(8).min(self.length);
        let mut place = at;
        while place < end {
            let block = self.block(place / BLOCK)?;
            let from = &block[(place % BLOCK) as usize..];
            let count = from.len().min((end - place) as usize);
            let filled = (place - at) as usize;
            word[filled..filled + count].copy_from_slice(&from[..count]);
            place += count as u64;
        }
        Ok(u64::from_le_bytes(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn words_are_those_of_the_content_at_any_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for length in [0, 1, 8, 4095, 4096, 4097, 8191, 8192, 12_295, 50_000] {
            let content: Vec<u8> = (0..length).map(|at: u32| (at * 7 % 251) as u8).collect();
            let mut sealed = content.clone();
            let mark = seal(&mut sealed);
            fs::write(&path, &sealed).unwrap();
            let blocks = Blocks::open(&path, mark).unwrap();
            assert_eq!(blocks.length, u64::from(length));
            assert_eq!(blocks.content().unwrap(), content);
            for at in (0..u64::from(length) + 10).step_by(3).chain(4085..4100) {
                assert_eq!(
                    (&blocks).word(at).unwrap(),
                    (&content[..]).word(at).unwrap(),
                    "{length} {at}"
                );
            }
        }
    }

    #[test]
    fn a_block_that_is_not_whole_is_named_when_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut sealed = vec![5; 10_000];
        let mark = seal(&mut sealed);
        for at in (0..sealed.len()).step_by(97) {
            let mut changed = sealed.clone();
            changed[at] ^= 4;
            fs::write(&path, &changed).unwrap();
            let read = Blocks::open(&path, mark).and_then(|blocks| blocks.content());
            assert!(matches!(read, Err(IndexError::Damaged { .. })), "{at}");
        }
        fs::write(&path, &sealed[..9000]).unwrap();
        assert!(Blocks::open(&path, mark).is_err());
    }
}
