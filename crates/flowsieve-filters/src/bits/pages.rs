//! Memory in whole pages for arrays of plain numbers, and large pages for large arrays.

use bytemuck::Pod;
use memmap2::MmapMut;
use std::marker::PhantomData;

/// Smallest array that asks for pages of 2 MiB. With pages of 4 KiB every access to a table larger
/// than the caches has a second miss, in the page table.
const LARGE_PAGES_FROM_BYTES: usize = 4 << 20;

/// Panic message if the system refuses memory. Callers recognise it, to report a lack of memory and
/// not a mistake in the program.
pub const MEMORY_REFUSED: &str = "the system refused memory that the run needs; ask for less with --memory, or allow the program more (ulimit -v)";

/// A fixed array of numbers, or of short arrays of numbers, that begins at the start of a page.
///
/// Its memory comes from the system in whole pages, so it is aligned and zeroed.
#[derive(Debug)]
pub struct Pages<T> {
    memory: MmapMut,
    len: usize,
    items: PhantomData<T>,
}

/// Returns whether the system would give this many bytes of pages now.
pub fn can_allocate(bytes: u64) -> bool {
    usize::try_from(bytes).is_ok_and(|bytes| MmapMut::map_anon(bytes).is_ok())
}

impl<T: Pod> Pages<T> {
    /// Creates `len` zeros.
    ///
    /// # Panics
    ///
    /// If the system does not give the memory.
    pub fn new(len: usize) -> Self {
        Self::try_new(len).unwrap_or_else(|| panic!("{MEMORY_REFUSED}"))
    }

    /// Creates `len` zeros; `None` if the system does not give the memory.
    pub fn try_new(len: usize) -> Option<Self> {
        let memory = MmapMut::map_anon(len * size_of::<T>()).ok()?;
        if memory.len() >= LARGE_PAGES_FROM_BYTES {
            // This is only advice: a system without large pages uses small ones.
            #[cfg(target_os = "linux")]
            let _ = memory.advise(memmap2::Advice::HugePage);
        }
        Some(Self { memory, len, items: PhantomData })
    }

    /// Returns the number of items.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no items.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all items. Call it once for many accesses: it checks lengths and alignment.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        bytemuck::cast_slice(&self.memory)
    }

    /// Returns all items for writing.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.memory)
    }
}

impl<T: Pod> Clone for Pages<T> {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.len);
        copy.as_mut_slice().copy_from_slice(self.as_slice());
        copy
    }
}

impl<T: Pod + PartialEq> PartialEq for Pages<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Pod + Eq> Eq for Pages<T> {}
