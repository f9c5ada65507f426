//! Vectors of numbers that are as narrow as their largest.

use std::ops::Range;

/// A vector of unsigned numbers, each of 1, 2, 4 or 8 bytes: all as the largest needs.
#[derive(Clone, Debug)]
pub(crate) enum Packed {
    Bytes(Vec<u8>),
    Halves(Vec<u16>),
    Words(Vec<u32>),
    Longs(Vec<u64>),
}

/// Room is made a quarter at a time: doubling would double the memory a large file takes.
fn push<T>(numbers: &mut Vec<T>, number: T) {
    if numbers.len() == numbers.capacity() {
        numbers.reserve_exact((numbers.len() / 4).max(256));
    }
    numbers.push(number);
}

fn widen<T: Copy, U: From<T>>(numbers: &mut Vec<T>) -> Vec<U> {
    std::mem::take(numbers).into_iter().map(U::from).collect()
}

// === impl Packed ===

impl Packed {
    pub(crate) const fn new() -> Self {
        Self::Bytes(Vec::new())
    }

    pub(crate) fn push(&mut self, number: u64) {
        loop {
            let wider = match self {
                Self::Bytes(numbers) => match u8::try_from(number) {
                    Ok(number) => return push(numbers, number),
                    Err(_) => Self::Halves(widen(numbers)),
                },
                Self::Halves(numbers) => match u16::try_from(number) {
                    Ok(number) => return push(numbers, number),
                    Err(_) => Self::Words(widen(numbers)),
                },
                Self::Words(numbers) => match u32::try_from(number) {
                    Ok(number) => return push(numbers, number),
                    Err(_) => Self::Longs(widen(numbers)),
                },
                Self::Longs(numbers) => return push(numbers, number),
            };
            *self = wider;
        }
    }

    pub(crate) fn shrink(&mut self) {
        match self {
            Self::Bytes(numbers) => numbers.shrink_to_fit(),
            Self::Halves(numbers) => numbers.shrink_to_fit(),
            Self::Words(numbers) => numbers.shrink_to_fit(),
            Self::Longs(numbers) => numbers.shrink_to_fit(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Bytes(numbers) => numbers.len(),
            Self::Halves(numbers) => numbers.len(),
            Self::Words(numbers) => numbers.len(),
            Self::Longs(numbers) => numbers.len(),
        }
    }

    /// The bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        self.width() * self.len()
    }

    /// The bytes each of them takes.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Bytes(_) => 1,
            Self::Halves(_) => 2,
            Self::Words(_) => 4,
            Self::Longs(_) => 8,
        }
    }

    /// Reads little-endian numbers of `width` bytes each; `None` if this type does not have that width, or the
    /// bytes are not a multiple of it.
    pub(crate) fn from_le(width: usize, bytes: &[u8]) -> Option<Self> {
        if width == 0 || !bytes.len().is_multiple_of(width) {
            return None;
        }
        macro_rules! numbers {
            ($variant:ident, $number:ty) => {{
                let (chunks, _) = bytes.as_chunks::<{ size_of::<$number>() }>();
                Self::$variant(
                    chunks
                        .iter()
                        .map(|chunk| <$number>::from_le_bytes(*chunk))
                        .collect(),
                )
            }};
        }
        Some(match width {
            1 => Self::Bytes(bytes.to_vec()),
            2 => numbers!(Halves, u16),
            4 => numbers!(Words, u32),
            8 => numbers!(Longs, u64),
            _ => return None,
        })
    }

    /// Appends the numbers of a range, little-endian.
    pub(crate) fn write_le(&self, range: Range<usize>, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(numbers) => out.extend_from_slice(&numbers[range]),
            Self::Halves(numbers) => {
                out.extend(numbers[range].iter().flat_map(|n| n.to_le_bytes()))
            }
            Self::Words(numbers) => out.extend(numbers[range].iter().flat_map(|n| n.to_le_bytes())),
            Self::Longs(numbers) => out.extend(numbers[range].iter().flat_map(|n| n.to_le_bytes())),
        }
    }

    /// The `i`th number. The width is the same for all, so the branch is well predicted.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> u64 {
        match self {
            Self::Bytes(numbers) => u64::from(numbers[i]),
            Self::Halves(numbers) => u64::from(numbers[i]),
            Self::Words(numbers) => u64::from(numbers[i]),
            Self::Longs(numbers) => numbers[i],
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).map(|i| self.get(i))
    }
}

/// Equal numbers are equal, however wide they are held.
impl PartialEq for Packed {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Packed {}

#[cfg(test)]
mod tests {
    use super::Packed;

    #[test]
    fn numbers_of_every_width() {
        let mut packed = Packed::new();
        let mut plain = Vec::new();
        for number in [
            0,
            255,
            256,
            65_535,
            65_536,
            4_294_967_295,
            4_294_967_296,
            1,
            u64::MAX,
        ] {
            packed.push(number);
            plain.push(number);
            assert!(packed.iter().eq(plain.iter().copied()));
            assert_eq!(packed.get(plain.len() - 1), number);
        }
        assert_eq!(packed.bytes(), 72);
        let mut narrow = Packed::new();
        narrow.push(7);
        assert_eq!(narrow.bytes(), 1);
        assert_eq!(narrow, Packed::Longs(vec![7]));
        assert_ne!(narrow, Packed::Longs(vec![8]));
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for width in [1, 2, 4, 8] {
            let bytes: Vec<u8> = (0..64).collect();
            let packed = Packed::from_le(width, &bytes).unwrap();
            assert_eq!((packed.width(), packed.bytes()), (width, 64));
            let mut written = Vec::new();
            packed.write_le(0..packed.len(), &mut written);
            assert_eq!(written, bytes);
            assert!(Packed::from_le(width, &bytes[..63]).is_none() || width == 1);
        }
        assert!(Packed::from_le(3, &[0; 6]).is_none());
        assert!(Packed::from_le(0, &[]).is_none());
    }
}
