//! The order in which a block of device threads adds: fixed, so that the CPU model gives the same fp32 bits.

/// Threads of a block, and with it lanes of every sum.
pub const LANES: usize = 1024;

const WARP: usize = 32;

/// Sums one value a lane: within each warp of 32 by halves (i with i + 16, then i + 8, ...), then the 32 warps' sums
/// the same way.
#[must_use]
pub fn sum(lanes: &[f32; LANES]) -> f32 {
    let mut warps = [0.0; WARP];
    for (total, lanes) in warps.iter_mut().zip(lanes.chunks_exact(WARP)) {
        *total = fold(lanes);
    }
    fold(&warps)
}

fn fold(values: &[f32]) -> f32 {
    let mut values: [f32; WARP] = values.try_into().unwrap_or([0.0; WARP]);
    let mut half = WARP / 2;
    while half > 0 {
        let (low, high) = values.split_at_mut(half);
        for (low, high) in low.iter_mut().zip(high) {
            *low += *high;
        }
        half /= 2;
    }
    values.first().copied().unwrap_or(0.0)
}

/// Sums values as a block does that walks over them: lane i takes the values i, i + 1024, and so on, in that order.
#[must_use]
pub fn strided_sum(values: impl Iterator<Item = f32>) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for (index, value) in values.enumerate() {
        if let Some(lane) = lanes.get_mut(index % LANES) {
            *lane += value;
        }
    }
    sum(&lanes)
}

/// The running sums of up to 1,024 values as a block scans them: each warp by doubling distances, then the warps'
/// totals the same way, then each warp's predecessor added. `values` become the running sums, without any carry.
pub fn scan(values: &mut [f32; LANES]) {
    let mut totals = [0.0f32; WARP];
    for (total, warp) in totals.iter_mut().zip(values.chunks_exact_mut(WARP)) {
        scan_warp(warp);
        *total = warp.last().copied().unwrap_or(0.0);
    }
    scan_warp(&mut totals);
    for (before, warp) in totals.iter().zip(values.chunks_exact_mut(WARP).skip(1)) {
        for value in warp {
            *value += *before;
        }
    }
}

fn scan_warp(values: &mut [f32]) {
    let mut distance = 1;
    while distance < WARP {
        for index in (distance..WARP).rev() {
            let before = values.get(index - distance).copied().unwrap_or(0.0);
            if let Some(value) = values.get_mut(index) {
                *value += before;
            }
        }
        distance *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_scans_agree_with_integers() {
        let values: [f32; LANES] = std::array::from_fn(|i| (i % 7) as f32);
        let total: u32 = (0..LANES as u32).map(|i| i % 7).sum();
        assert_eq!(sum(&values), total as f32);
        let mut scanned = values;
        scan(&mut scanned);
        let mut running = 0.0;
        for (value, scanned) in values.iter().zip(&scanned) {
            running += value;
            assert_eq!(running, *scanned);
        }
        assert_eq!(strided_sum((0..3000).map(|i| i as f32)), (0..3000).sum::<i32>() as f32);
    }

    #[test]
    fn the_order_is_by_halves_and_not_from_the_left() {
        // 1 and 2^24 cannot be added in fp32 without loss; -2^24 sixteen lanes on cancels it first.
        let mut lanes = [0.0; LANES];
        (lanes[0], lanes[1], lanes[16]) = (16_777_216.0, 1.0, -16_777_216.0);
        assert_eq!(sum(&lanes), 1.0);
        let left_to_right: f32 = lanes.iter().sum();
        assert_eq!(left_to_right, 0.0);
    }
}
