//! One Montgomery product in 64-bit words, with the two carry chains of MULX, ADCX and ADOX.
//!
//! Compilers keep one carry flag where the processor has two, so this is assembly; the algorithm and its
//! bounds are those of `kernels/field/limbs.rs` (Ozturk, Guilford, Gopal and Feghali, *New instructions
//! supporting large integer arithmetic on Intel architecture processors*, 2012). Memory: none.
#![allow(unsafe_code)]

use std::arch::asm;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::Backend;

/// Proof that the processor has BMI2 (MULX) and ADX.
#[derive(Clone, Copy)]
pub(crate) struct Words(());

/// Not looked up yet; not used; used.
const UNKNOWN: u8 = 0;
const ABSENT: u8 = 1;
const PRESENT: u8 = 2;
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Adds `k p` for the k that makes the lowest word zero, and shifts by that word.
macro_rules! reduce {
    () => {
        concat!(
            "mov rdx, {inverse}\n imul rdx, {r0}\n xor {low:e}, {low:e}\n",
            "mulx {high}, {low}, [{p}]\n adcx {low}, {r0}\n mov {r0}, {high}\n",
            "adcx {r0}, {r1}\n mulx {r1}, {low}, [{p} + 8]\n adox {r0}, {low}\n",
            "adcx {r1}, {r2}\n mulx {r2}, {low}, [{p} + 16]\n adox {r1}, {low}\n",
            "adcx {r2}, {r3}\n mulx {r3}, {low}, [{p} + 24]\n adox {r2}, {low}\n",
            "mov {low:e}, 0\n adcx {r3}, {low}\n adox {r3}, {top}\n",
        )
    };
}

/// Adds `a` times a word of `b`, and reduces.
macro_rules! row {
    ($offset:literal) => {
        concat!(
            "mov rdx, [{b} + ",
            $offset,
            "]\n xor {low:e}, {low:e}\n",
            "mulx {top}, {low}, [{a}]\n adox {r0}, {low}\n",
            "adcx {r1}, {top}\n mulx {top}, {low}, [{a} + 8]\n adox {r1}, {low}\n",
            "adcx {r2}, {top}\n mulx {top}, {low}, [{a} + 16]\n adox {r2}, {low}\n",
            "adcx {r3}, {top}\n mulx {top}, {low}, [{a} + 24]\n adox {r3}, {low}\n",
            "mov {low:e}, 0\n adcx {top}, {low}\n adox {top}, {low}\n",
            reduce!(),
        )
    };
}

impl Words {
    /// The proof, if this processor has the instructions.
    pub(crate) fn detect() -> Option<Self> {
        let has_all = is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("adx");
        has_all.then_some(Self(()))
    }

    /// The proof, if this process is to use them.
    #[inline(always)]
    pub(crate) fn chosen() -> Option<Self> {
        match STATE.load(Relaxed) {
            PRESENT => Some(Self(())),
            ABSENT => None,
            _ => Self::choose(),
        }
    }

    #[cold]
    fn choose() -> Option<Self> {
        let chosen = match Backend::detect() {
            Backend::Portable => None,
            Backend::Words | Backend::Avx2 | Backend::Avx512 => Self::detect(),
        };
        STATE.store(if chosen.is_some() { PRESENT } else { ABSENT }, Relaxed);
        chosen
    }

    /// `a * b / 2^256` modulo p, not reduced to below p, where `inverse` = -1/p modulo 2^64. As for the
    /// portable form, p has a spare bit.
    #[inline(always)]
    pub(crate) fn product(self, a: &[u64; 4], b: &[u64; 4], p: &[u64; 4], inverse: u64) -> [u64; 4] {
        let (r0, r1, r2, r3): (u64, u64, u64, u64);
        // SAFETY: the processor has the instructions, or there were no `Words`. Only the 32 bytes at a, b and
        // p are read, which the references vouch for; nothing is written but registers, all of them declared,
        // and flags.
        unsafe {
            asm!(
                "mov rdx, [{b}]\n xor {low:e}, {low:e}",
                "mulx {r1}, {r0}, [{a}]",
                "mulx {r2}, {low}, [{a} + 8]\n adox {r1}, {low}",
                "mulx {r3}, {low}, [{a} + 16]\n adox {r2}, {low}",
                "mulx {top}, {low}, [{a} + 24]\n adox {r3}, {low}",
                "mov {low:e}, 0\n adox {top}, {low}",
                reduce!(),
                row!("8"),
                row!("16"),
                row!("24"),
                a = in(reg) a,
                b = in(reg) b,
                p = in(reg) p,
                inverse = in(reg) inverse,
                r0 = out(reg) r0,
                r1 = out(reg) r1,
                r2 = out(reg) r2,
                r3 = out(reg) r3,
                top = out(reg) _,
                low = out(reg) _,
                high = out(reg) _,
                out("rdx") _,
                options(pure, readonly, nostack),
            );
        }
        [r0, r1, r2, r3]
    }
}
