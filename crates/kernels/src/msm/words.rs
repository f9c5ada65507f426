//! Numbers of several 64-bit words, the lowest first.

/// `sum += number`, modulo the range of the sum's words; a shorter number is padded with zero words. Returns
/// whether there was a carry out of the last word.
#[inline(always)]
pub(crate) fn add(sum: &mut [u64], number: &[u64]) -> bool {
    let mut carry = false;
    for (i, word) in sum.iter_mut().enumerate() {
        let (first, over) = word.overflowing_add(number.get(i).copied().unwrap_or(0));
        let (second, over_again) = first.overflowing_add(u64::from(carry));
        *word = second;
        carry = over || over_again;
    }
    carry
}

/// `difference −= number`, modulo the range of the difference's words, of which the number has as many. Returns
/// whether the number was the larger.
#[inline(always)]
pub(crate) fn subtract(difference: &mut [u64], number: &[u64]) -> bool {
    let mut borrow = false;
    for (word, number) in difference.iter_mut().zip(number) {
        let (first, under) = word.overflowing_sub(*number);
        let (second, under_again) = first.overflowing_sub(u64::from(borrow));
        *word = second;
        borrow = under || under_again;
    }
    borrow
}
