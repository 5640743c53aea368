//! Loops over contiguous numbers, done with the widest vectors that the machine has.
//!
//! A program that runs on any x86 machine uses vectors of 16 bytes; nearly all machines have some of 32. Such loops are
//! compiled for both, and when they are called the machine is asked which it can take. The result is the same.

/// Something to do. Whatever it calls should be inlined: only that is compiled for wide vectors.
pub(crate) trait Work {
    /// What comes of it.
    type Output;

    /// Does it; to be implemented as `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

/// Does something with the widest vectors that the machine has.
#[inline]
pub(crate) fn widest<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn with_avx2<W: Work>(work: W) -> W::Output {
            work.run()
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            #[expect(unsafe_code, reason = "the machine was asked for what the function needs")]
            return unsafe { with_avx2(work) };
        }
    }
    work.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sum<'a>(&'a [u16]);

    impl Work for Sum<'_> {
        type Output = u16;

        #[inline(always)]
        fn run(self) -> u16 {
            self.0.iter().fold(0, |sum, number| sum.wrapping_add(*number))
        }
    }

    #[test]
    fn wide_and_narrow_come_to_the_same() {
        let numbers: Vec<u16> = (0..10_001).map(|number| (number * 37) as u16).collect();
        assert_eq!(widest(Sum(&numbers)), Sum(&numbers).run());
    }
}
