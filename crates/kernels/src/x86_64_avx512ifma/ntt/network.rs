//! One transform in each lane: a decimation in time over a buffer of columns.
//!
//! The first pass reads its source in bit-reversed order and does one or two levels of butterflies,
//! every later pass two, the last of them into a sink, in natural order. With factors a, b, b' a
//! radix-4 butterfly on places j, j + h, j + 2h, j + 3h of each block of 4h is four radix-2 ones:
//! two `u ± a·v`, then `u ± b·v` and `u ± b'·v`.
//!
//! Ranges, in multiples of p: inputs and outputs of a butterfly are in 5..30. Only the place that is never
//! multiplied has to be reduced, to 16..18; four centred products move it by 10 at most. Columns grow by
//! 2⁵⁸ in a pass and stay far below 2⁶³.

use super::arithmetic::{
    Columns, Constants, Factor, add, add_16p, carry, multiply_centred, reduce, sub,
};

/// The factors of a transform of `size` points.
pub(super) struct Network {
    pub(super) size: usize,
    /// Factors of the first pass: a, b, b' of a radix-4 butterfly, or a of a radix-2 one.
    pub(super) first: [Factor; 3],
    /// Whether the inputs are scaled by powers; if not then a and b of the first pass are 1.
    pub(super) shifted: bool,
    /// a, b, b' for each j below h, for the passes after the first, in their order.
    pub(super) factors: Vec<[Factor; 3]>,
}

/// The source of a transform's inputs.
///
/// # Safety
///
/// `load`: the instructions of this back end, an index below the network's size.
pub(super) trait Source {
    /// Whether inputs are in 5..30, not in 0..2.2, in multiples of p.
    const WIDE: bool;
    unsafe fn load(&self, index: usize) -> Columns;
    /// Brings an input nearer.
    unsafe fn prefetch(&self, index: usize);
}

/// The destination of a transform's outputs.
///
/// # Safety
///
/// `store`: the instructions of this back end, indices below the network's size.
pub(super) trait Sink {
    /// Takes outputs `index + r·quarter`, in 5..30, of each r; called for each index in turn.
    unsafe fn store(&mut self, index: usize, quarter: usize, outputs: [Columns; 4]);
}

/// Vectors that stay in the first-level cache, with the factors, while their first passes are done.
const CACHED: usize = 64;

impl Network {
    /// The points of the first pass's butterflies.
    fn first_radix(&self) -> usize {
        if self.size.trailing_zeros().is_multiple_of(2) {
            4
        } else {
            2
        }
    }

    /// Transforms `source` into `sink`.
    ///
    /// # Safety
    ///
    /// The instructions of this back end; `buffer` is good for `size` vectors, size at least 8.
    #[inline(always)]
    pub(super) unsafe fn transform<P: Constants, S: Source>(
        &self,
        source: &S,
        buffer: *mut Columns,
        sink: &mut impl Sink,
    ) {
        let radix = self.first_radix();
        let cached = if radix == 4 { CACHED } else { CACHED / 2 }.min(self.size);
        // SAFETY: blocks and passes stay within `size`.
        unsafe {
            for start in (0..self.size).step_by(cached) {
                if radix == 4 {
                    self.first_pass_4::<P, S>(source, buffer, start, cached);
                } else {
                    self.first_pass_2::<P, S>(source, buffer, start, cached);
                }
                let mut next = start + cached;
                self.passes::<P>(buffer.add(start), cached, radix, cached, || {
                    // Two passes of cached / 4 butterflies each: two inputs a butterfly.
                    if next < self.size {
                        source.prefetch(self.reversed(next));
                        source.prefetch(self.reversed(next + 1));
                        next += 2;
                    }
                });
            }
            self.passes::<P>(buffer, self.size, cached, self.size, || {});
            self.last_pass::<P>(buffer, sink);
        }
    }

    /// The index of the input that the first pass loads to `place`.
    #[inline(always)]
    fn reversed(&self, place: usize) -> usize {
        place.reverse_bits() >> (usize::BITS - self.size.trailing_zeros())
    }

    /// The passes from transforms of `from` points to transforms of `to` points, except the last pass of all.
    #[inline(always)]
    unsafe fn passes<P: Constants>(
        &self,
        buffer: *mut Columns,
        length: usize,
        from: usize,
        to: usize,
        mut meanwhile: impl FnMut(),
    ) {
        let mut quarter = from;
        while 4 * quarter <= to && 4 * quarter < self.size {
            let factors = self.pass_factors(quarter);
            for start in (0..length).step_by(4 * quarter) {
                for (j, factors) in factors.iter().enumerate() {
                    meanwhile();
                    // SAFETY: four places of a block within `length`.
                    unsafe {
                        let place = buffer.add(start + j);
                        let outputs = butterfly::<P, true>(read_4(place, quarter), factors);
                        write_4(place, quarter, outputs);
                    }
                }
            }
            quarter *= 4;
        }
    }

    /// The factors of the pass over blocks of `4·quarter`.
    #[inline(always)]
    fn pass_factors(&self, quarter: usize) -> &[[Factor; 3]] {
        // The passes before it have quarter/4, quarter/16, … down to the first radix.
        let before = (quarter - self.first_radix()) / 3;
        &self.factors[before..before + quarter]
    }

    #[inline(always)]
    unsafe fn first_pass_4<P: Constants, S: Source>(
        &self,
        source: &S,
        buffer: *mut Columns,
        start: usize,
        length: usize,
    ) {
        let quarter = self.size / 4;
        for place in (start..start + length).step_by(4) {
            let i = self.reversed(place);
            // SAFETY: indices below the size.
            unsafe {
                let x = [
                    source.load(i),
                    source.load(i + 2 * quarter),
                    source.load(i + quarter),
                    source.load(i + 3 * quarter),
                ];
                let outputs = if S::WIDE {
                    butterfly::<P, true>(x, &self.first)
                } else if self.shifted {
                    let x = [add_16p::<P>(x[0]), x[1], add_16p::<P>(x[2]), x[3]];
                    butterfly::<P, false>(x, &self.first)
                } else {
                    first_butterfly::<P>(x, &self.first[2])
                };
                write_4(buffer.add(place), 1, outputs);
            }
        }
    }

    #[inline(always)]
    unsafe fn first_pass_2<P: Constants, S: Source>(
        &self,
        source: &S,
        buffer: *mut Columns,
        start: usize,
        length: usize,
    ) {
        let half = self.size / 2;
        for place in (start..start + length).step_by(2) {
            let i = self.reversed(place);
            // SAFETY: indices below the size.
            unsafe {
                let (u, v) = (source.load(i), source.load(i + half));
                let u = if S::WIDE { reduce::<P>(u) } else { u };
                let u = add_16p::<P>(u);
                let v = if S::WIDE || self.shifted {
                    multiply_centred::<P>(carry(v), &self.first[0].splat())
                } else {
                    v
                };
                *buffer.add(place) = add(u, v);
                *buffer.add(place + 1) = sub(u, v);
            }
        }
    }

    #[inline(always)]
    unsafe fn last_pass<P: Constants>(&self, buffer: *mut Columns, sink: &mut impl Sink) {
        let quarter = self.size / 4;
        for (j, factors) in self.pass_factors(quarter).iter().enumerate() {
            // SAFETY: places below the size.
            unsafe {
                let x = read_4(buffer.add(j), quarter);
                sink.store(j, quarter, butterfly::<P, true>(x, factors));
            }
        }
    }
}

/// # Safety
///
/// Four places, `step` apart, good for reading.
#[inline(always)]
unsafe fn read_4(place: *const Columns, step: usize) -> [Columns; 4] {
    // SAFETY: as the caller promises.
    unsafe {
        [
            *place,
            *place.add(step),
            *place.add(2 * step),
            *place.add(3 * step),
        ]
    }
}

/// # Safety
///
/// Four places, `step` apart, good for writing.
#[inline(always)]
pub(super) unsafe fn write_4(place: *mut Columns, step: usize, values: [Columns; 4]) {
    // SAFETY: as the caller promises.
    unsafe {
        *place = values[0];
        *place.add(step) = values[1];
        *place.add(2 * step) = values[2];
        *place.add(3 * step) = values[3];
    }
}

/// A radix-4 butterfly on places j, j + h, j + 2h, j + 3h: 404 instructions, 422 with the reduction
/// of the first place, which else must be in 16..18 already.
#[inline(always)]
unsafe fn butterfly<P: Constants, const REDUCE: bool>(
    [x0, x1, x2, x3]: [Columns; 4],
    [a, b, c]: &[Factor; 3],
) -> [Columns; 4] {
    // SAFETY: register operations only.
    unsafe {
        let a = a.splat();
        let t1 = multiply_centred::<P>(carry(x1), &a);
        let t3 = multiply_centred::<P>(carry(x3), &a);
        let x0 = if REDUCE {
            add_16p::<P>(reduce::<P>(x0))
        } else {
            x0
        };
        let (y0, y1) = (add(x0, t1), sub(x0, t1));
        let (y2, y3) = (add(x2, t3), sub(x2, t3));
        let t2 = multiply_centred::<P>(carry(y2), &b.splat());
        let t3 = multiply_centred::<P>(carry(y3), &c.splat());
        [add(y0, t2), add(y1, t3), sub(y0, t2), sub(y1, t3)]
    }
}

/// The same with factors 1, 1, i on inputs in 0..2.2: outputs in 8..26. 141 instructions.
#[inline(always)]
unsafe fn first_butterfly<P: Constants>(
    [x0, x1, x2, x3]: [Columns; 4],
    i: &Factor,
) -> [Columns; 4] {
    // SAFETY: register operations only.
    unsafe {
        let x0 = add_16p::<P>(x0);
        let (y0, y1) = (add(x0, x1), sub(x0, x1));
        let (y2, y3) = (add(x2, x3), sub(add_16p::<P>(x2), x3));
        let t3 = multiply_centred::<P>(carry(y3), &i.splat());
        [add(y0, y2), add(y1, t3), sub(y0, y2), sub(y1, t3)]
    }
}
