//! Loops over contiguous numbers, done with the widest vectors that the machine has.
//!
//! A program that runs on any x86 machine uses vectors of 16 bytes; nearly all machines have some of 32. Such loops are
//! compiled for both, and when they are called the machine is asked which it can take. The result is the same.

/// A loop over contiguous numbers. Whatever it calls should be inlined: only that is compiled for wide vectors.
pub trait Kernel {
    /// The result of the loop.
    type Output;

    /// Runs the loop; to be implemented as `#[inline(always)]`.
    fn run_loop(self) -> Self::Output;
}

/// Runs a kernel with the widest vectors that the machine has.
#[inline]
pub fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
            kernel.run_loop()
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            #[expect(unsafe_code, reason = "the machine was asked for what the function needs")]
            return unsafe { with_avx2(kernel) };
        }
    }
    kernel.run_loop()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sum<'a>(&'a [u16]);

    impl Kernel for Sum<'_> {
        type Output = u16;

        #[inline(always)]
        fn run_loop(self) -> u16 {
            self.0.iter().fold(0, |sum, number| sum.wrapping_add(*number))
        }
    }

    #[test]
    fn wide_and_narrow_come_to_the_same() {
        let numbers: Vec<u16> = (0..10_001).map(|number| (number * 37) as u16).collect();
        assert_eq!(dispatch(Sum(&numbers)), Sum(&numbers).run_loop());
    }
}
