//! Products of whole numbers for x86-64 with ADX and BMI2, Intel's since Broadwell and AMD's since
//! Zen: a row of a product has two chains of carries side by side, which no compiler makes of Rust's
//! 128-bit products.
//!
//! The portable back end multiplies by it where the processor has the instructions.
#![expect(
    unsafe_code,
    reason = "assembly over arrays whose lengths the types say"
)]

use std::arch::asm;

use ark_ff::MontConfig;

use crate::portable::pairing::words::{AnyProcessor, Multiplier, Wide, below_modulus};

/// `mulx`, `adcx` and `adox`, for numbers of four and six words. A value of this type exists only where
/// the processor has the instructions: [`Adx::detected`] alone makes them.
#[derive(Clone, Copy)]
pub(crate) struct Adx(());

/// The modulus and its inverse, as a reduction reads them.
#[repr(C)]
struct Constants<const N: usize> {
    modulus: [u64; N],
    /// −1/p modulo 2⁶⁴.
    inverse: u64,
}

// === impl Adx ===

impl Adx {
    /// `Some` if this processor has the instructions and they support numbers of `N` words.
    #[inline(always)]
    pub(crate) fn detected<const N: usize>() -> Option<Self> {
        let is_there = matches!(N, 4 | 6)
            && is_x86_feature_detected!("adx")
            && is_x86_feature_detected!("bmi2");
        is_there.then_some(Self(()))
    }
}

impl<const N: usize> Multiplier<N> for Adx {
    #[inline(always)]
    fn product(self, a: &[u64; N], b: &[u64; N]) -> Wide<N> {
        let mut product = Wide {
            low: [0; N],
            high: [0; N],
        };
        let (a_words, b_words, out) = (a.as_ptr(), b.as_ptr(), (&raw mut product).cast());
        match N {
            // SAFETY: a and b have N words and the product, `repr(C)`, 2·N; the processor has the
            // instructions, or there were no `self`.
            4 => unsafe { product_of_four(a_words, b_words, out) },
            // SAFETY: the same.
            6 => unsafe { product_of_six(a_words, b_words, out) },
            _ => return AnyProcessor.product(a, b),
        }
        product
    }

    #[inline(always)]
    fn reduced<C: MontConfig<N>>(self, value: &Wide<N>) -> [u64; N] {
        let constants = const {
            &Constants {
                modulus: C::MODULUS.0,
                inverse: C::INV,
            }
        };
        let constants = (&raw const *constants).cast();
        let words = (&raw const *value).cast();
        let mut reduced = [0; N];
        match N {
            // SAFETY: the constants, `repr(C)`, have N + 1 words and the value, `repr(C)`, 2·N; the
            // processor has the instructions, or there were no `self`.
            4 => reduced.copy_from_slice(&unsafe { reduce_four(constants, words) }),
            // SAFETY: the same.
            6 => reduced.copy_from_slice(&unsafe { reduce_six(constants, words) }),
            _ => return AnyProcessor.reduced::<C>(value),
        }
        below_modulus::<C, N>(&reduced)
    }
}

/// Adds `rdx` times the word at `$number + 8·$at` to two registers.
macro_rules! column {
    ($number:literal, $at:literal, $low:literal, $high:literal) => {
        concat!(
            "mulx {hi}, {lo}, [{",
            $number,
            "} + 8*",
            $at,
            "]\n",
            "adcx {",
            $low,
            "}, {lo}\n",
            "adox {",
            $high,
            "}, {hi}\n",
        )
    };
}

/// Adds `rdx` times a number to the registers, of which the last is new; the flags are clear before
/// and after.
macro_rules! columns {
    ($number:literal: $a:literal $b:literal $c:literal $d:literal $top:literal) => {
        concat!(
            "xor {",
            $top,
            "}, {",
            $top,
            "}\n",
            column!($number, "0", $a, $b),
            column!($number, "1", $b, $c),
            column!($number, "2", $c, $d),
            column!($number, "3", $d, $top),
            "mov {lo}, 0\n",
            "adcx {",
            $top,
            "}, {lo}\n",
        )
    };
    ($number:literal: $a:literal $b:literal $c:literal $d:literal $e:literal $f:literal $top:literal) => {
        concat!(
            "xor {",
            $top,
            "}, {",
            $top,
            "}\n",
            column!($number, "0", $a, $b),
            column!($number, "1", $b, $c),
            column!($number, "2", $c, $d),
            column!($number, "3", $d, $e),
            column!($number, "4", $e, $f),
            column!($number, "5", $f, $top),
            "mov {lo}, 0\n",
            "adcx {",
            $top,
            "}, {lo}\n",
        )
    };
}

/// A row of a product after the first: by one word of b; the lowest word is stored.
macro_rules! row {
    ($at:literal: $lowest:literal $($register:literal)*) => {
        concat!(
            "mov rdx, [{b} + 8*", $at, "]\n",
            columns!("a": $lowest $($register)*),
            "mov [{out} + 8*", $at, "], {", $lowest, "}\n",
        )
    };
}

/// A row of a reduction: adds the multiple of p that makes the lowest word zero. `$inverse` is the place of
/// −1/p after the words of p.
macro_rules! reduction {
    ($inverse:literal: $lowest:literal $($register:literal)*) => {
        concat!(
            "mov rdx, {", $lowest, "}\n",
            "imul rdx, [{constants} + 8*", $inverse, "]\n",
            columns!("constants": $lowest $($register)*),
        )
    };
}

/// # Safety
///
/// Four words at `a` and `b`, and place for eight at `out`; the instructions.
#[inline(always)]
unsafe fn product_of_four(a: *const u64, b: *const u64, out: *mut u64) {
    // SAFETY: as the caller promises; memory is read and written inside of those words only.
    unsafe {
        asm!(
            "mov rdx, [{b}]",
            "mulx {r1}, {r0}, [{a}]",
            "mulx {r2}, {lo}, [{a} + 8]",
            "add {r1}, {lo}",
            "mulx {r3}, {lo}, [{a} + 16]",
            "adc {r2}, {lo}",
            "mulx {r4}, {lo}, [{a} + 24]",
            "adc {r3}, {lo}",
            "adc {r4}, 0",
            "mov [{out}], {r0}",
            row!("1": "r1" "r2" "r3" "r4" "r0"),
            row!("2": "r2" "r3" "r4" "r0" "r1"),
            row!("3": "r3" "r4" "r0" "r1" "r2"),
            "mov [{out} + 32], {r4}",
            "mov [{out} + 40], {r0}",
            "mov [{out} + 48], {r1}",
            "mov [{out} + 56], {r2}",
            a = in(reg) a,
            b = in(reg) b,
            out = in(reg) out,
            r0 = out(reg) _,
            r1 = out(reg) _,
            r2 = out(reg) _,
            r3 = out(reg) _,
            r4 = out(reg) _,
            lo = out(reg) _,
            hi = out(reg) _,
            out("rdx") _,
            options(nostack),
        );
    }
}

/// # Safety
///
/// Six words at `a` and `b`, and place for twelve at `out`; the instructions.
#[inline(always)]
unsafe fn product_of_six(a: *const u64, b: *const u64, out: *mut u64) {
    // SAFETY: as the caller promises; memory is read and written inside of those words only.
    unsafe {
        asm!(
            "mov rdx, [{b}]",
            "mulx {r1}, {r0}, [{a}]",
            "mulx {r2}, {lo}, [{a} + 8]",
            "add {r1}, {lo}",
            "mulx {r3}, {lo}, [{a} + 16]",
            "adc {r2}, {lo}",
            "mulx {r4}, {lo}, [{a} + 24]",
            "adc {r3}, {lo}",
            "mulx {r5}, {lo}, [{a} + 32]",
            "adc {r4}, {lo}",
            "mulx {r6}, {lo}, [{a} + 40]",
            "adc {r5}, {lo}",
            "adc {r6}, 0",
            "mov [{out}], {r0}",
            row!("1": "r1" "r2" "r3" "r4" "r5" "r6" "r0"),
            row!("2": "r2" "r3" "r4" "r5" "r6" "r0" "r1"),
            row!("3": "r3" "r4" "r5" "r6" "r0" "r1" "r2"),
            row!("4": "r4" "r5" "r6" "r0" "r1" "r2" "r3"),
            row!("5": "r5" "r6" "r0" "r1" "r2" "r3" "r4"),
            "mov [{out} + 48], {r6}",
            "mov [{out} + 56], {r0}",
            "mov [{out} + 64], {r1}",
            "mov [{out} + 72], {r2}",
            "mov [{out} + 80], {r3}",
            "mov [{out} + 88], {r4}",
            a = in(reg) a,
            b = in(reg) b,
            out = in(reg) out,
            r0 = out(reg) _,
            r1 = out(reg) _,
            r2 = out(reg) _,
            r3 = out(reg) _,
            r4 = out(reg) _,
            r5 = out(reg) _,
            r6 = out(reg) _,
            lo = out(reg) _,
            hi = out(reg) _,
            out("rdx") _,
            options(nostack),
        );
    }
}

/// Montgomery's reduction of the eight words at `value`, below `p·2²⁵⁶`, to four words, below 2p.
///
/// # Safety
///
/// Four words of p and −1/p at `constants`, and eight at `value`; the instructions.
#[inline(always)]
unsafe fn reduce_four(constants: *const u64, value: *const u64) -> [u64; 4] {
    let mut words = [0; 4];
    // In registers, not in memory: the compiler would load from there at once more than was stored at once,
    // for which a processor waits.
    // SAFETY: as the caller promises; memory is read inside of those words only, and none is written.
    unsafe {
        asm!(
            "mov {r0}, [{value}]",
            "mov {r1}, [{value} + 8]",
            "mov {r2}, [{value} + 16]",
            "mov {r3}, [{value} + 24]",
            reduction!("4": "r0" "r1" "r2" "r3" "r4"),
            reduction!("4": "r1" "r2" "r3" "r4" "r0"),
            reduction!("4": "r2" "r3" "r4" "r0" "r1"),
            reduction!("4": "r3" "r4" "r0" "r1" "r2"),
            "add {r4}, [{value} + 32]",
            "adc {r0}, [{value} + 40]",
            "adc {r1}, [{value} + 48]",
            "adc {r2}, [{value} + 56]",
            constants = in(reg) constants,
            value = in(reg) value,
            r0 = out(reg) words[1],
            r1 = out(reg) words[2],
            r2 = out(reg) words[3],
            r3 = out(reg) _,
            r4 = out(reg) words[0],
            lo = out(reg) _,
            hi = out(reg) _,
            out("rdx") _,
            options(nostack, readonly),
        );
    }
    words
}

/// Montgomery's reduction of the twelve words at `value`, below `p·2³⁸⁴`, to six words, below 2p.
///
/// # Safety
///
/// Six words of p and −1/p at `constants`, and twelve at `value`; the instructions.
#[inline(always)]
unsafe fn reduce_six(constants: *const u64, value: *const u64) -> [u64; 6] {
    let mut words = [0; 6];
    // SAFETY: as the caller promises; memory is read inside of those words only, and none is written.
    unsafe {
        asm!(
            "mov {r0}, [{value}]",
            "mov {r1}, [{value} + 8]",
            "mov {r2}, [{value} + 16]",
            "mov {r3}, [{value} + 24]",
            "mov {r4}, [{value} + 32]",
            "mov {r5}, [{value} + 40]",
            reduction!("6": "r0" "r1" "r2" "r3" "r4" "r5" "r6"),
            reduction!("6": "r1" "r2" "r3" "r4" "r5" "r6" "r0"),
            reduction!("6": "r2" "r3" "r4" "r5" "r6" "r0" "r1"),
            reduction!("6": "r3" "r4" "r5" "r6" "r0" "r1" "r2"),
            reduction!("6": "r4" "r5" "r6" "r0" "r1" "r2" "r3"),
            reduction!("6": "r5" "r6" "r0" "r1" "r2" "r3" "r4"),
            "add {r6}, [{value} + 48]",
            "adc {r0}, [{value} + 56]",
            "adc {r1}, [{value} + 64]",
            "adc {r2}, [{value} + 72]",
            "adc {r3}, [{value} + 80]",
            "adc {r4}, [{value} + 88]",
            constants = in(reg) constants,
            value = in(reg) value,
            r0 = out(reg) words[1],
            r1 = out(reg) words[2],
            r2 = out(reg) words[3],
            r3 = out(reg) words[4],
            r4 = out(reg) words[5],
            r5 = out(reg) _,
            r6 = out(reg) words[0],
            lo = out(reg) _,
            hi = out(reg) _,
            out("rdx") _,
            options(nostack, readonly),
        );
    }
    words
}
