//! Inverts dense matrices of floating-point numbers.

/// A matrix with a smaller pivot, as a fraction of its row, is treated as singular.
const MIN_RELATIVE_PIVOT: f64 = 1e-12;

/// Inverts an `n × n` matrix by Gauss-Jordan elimination on `[matrix | identity]`, both by rows.
/// `None` if the matrix is singular.
pub(super) fn inverted(n: usize, mut matrix: Vec<f64>) -> Option<Vec<f64>> {
    let mut inverse = vec![0.0; n * n];
    for i in 0..n {
        inverse[i * n + i] = 1.0;
    }
    let of_row = |row: &[f64]| row.iter().fold(0.0f64, |m, a| m.max(a.abs()));
    let mut sizes: Vec<f64> = matrix.chunks(n.max(1)).map(of_row).collect();
    for k in 0..n {
        let part = |i: usize| matrix[i * n + k].abs() / sizes[i];
        let at = (k..n).max_by(|&a, &b| part(a).total_cmp(&part(b)))?;
        let pivot = matrix[at * n + k];
        if part(at).is_nan() || part(at) <= MIN_RELATIVE_PIVOT {
            return None;
        }
        sizes.swap(at, k);
        if at != k {
            for j in 0..n {
                matrix.swap(at * n + j, k * n + j);
                inverse.swap(at * n + j, k * n + j);
            }
        }
        for j in k..n {
            matrix[k * n + j] /= pivot;
        }
        for j in 0..n {
            inverse[k * n + j] /= pivot;
        }
        let matrix_row = matrix[k * n..(k + 1) * n].to_vec();
        let inverse_row = inverse[k * n..(k + 1) * n].to_vec();
        for i in 0..n {
            let factor = matrix[i * n + k];
            if i == k || factor == 0.0 {
                continue;
            }
            for j in k..n {
                matrix[i * n + j] -= factor * matrix_row[j];
            }
            let target = &mut inverse[i * n..(i + 1) * n];
            for (t, r) in target.iter_mut().zip(&inverse_row) {
                *t -= factor * r;
            }
        }
    }
    Some(inverse)
}
