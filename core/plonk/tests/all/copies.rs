//! The permutation in files against the same algorithm in memory, and its sigma columns against those of the
//! stock crate.

use crate::common::{Place, converted, omega, on_one_and_two_threads, place};
use ark_bn254::Fr;
use ark_ff::Field;
use proptest::prelude::*;
use proptest::sample::Index;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spillproof_engine::Error;
use spillproof_plonk::stages::Copies;
use stock_halo2_axiom::circuit::{Cell, Layouter, SimpleFloorPlanner, Value};
use stock_halo2_axiom::halo2curves::bn256::{Bn256, Fr as Stock, G1Affine};
use stock_halo2_axiom::halo2curves::ff::{Field as StockField, PrimeField as StockPrimeField};
use stock_halo2_axiom::plonk::{Advice, Circuit, Column, ConstraintSystem, keygen_pk, keygen_vk};
use stock_halo2_axiom::poly::kzg::commitment::ParamsKZG;

/// (column, row) on both sides.
type Copy = ((usize, u64), (usize, u64));

/// The permutation in memory: each cell's cycle as a list in the order of images, the longer first when two
/// become one.
fn naive(columns: usize, rows: u64, copies: &[Copy]) -> Vec<Vec<(usize, u64)>> {
    let cells = columns * rows as usize;
    let index = |(column, row): (usize, u64)| column * rows as usize + row as usize;
    let mut cycle_of: Vec<usize> = (0..cells).collect();
    let mut members: Vec<Vec<usize>> = (0..cells).map(|cell| vec![cell]).collect();
    let mut image: Vec<usize> = (0..cells).collect();
    for &(left, right) in copies {
        let (left, right) = (index(left), index(right));
        let (mut kept, mut joined) = (cycle_of[left], cycle_of[right]);
        if kept == joined {
            continue;
        }
        if members[kept].len() < members[joined].len() {
            (kept, joined) = (joined, kept);
        }
        for cell in std::mem::take(&mut members[joined]) {
            cycle_of[cell] = kept;
            members[kept].push(cell);
        }
        image.swap(left, right);
    }
    let place = |cell: usize| (cell / rows as usize, (cell % rows as usize) as u64);
    let images: Vec<_> = image.into_iter().map(place).collect();
    images.chunks(rows as usize).map(<[_]>::to_vec).collect()
}

fn assembled(place: &Place, columns: usize, rows: u64, copies: &[Copy]) -> Copies {
    let mut assembly = Copies::new(&place.workspace, columns, rows).unwrap();
    for (left, right) in copies {
        assembly.copy(*left, *right).unwrap();
    }
    assembly
}

/// Cells near each other, in chains, anywhere, and a few that many others copy.
fn copies(columns: usize, rows: u64, count: usize) -> impl Strategy<Value = Vec<Copy>> {
    let one = (
        any::<Index>(),
        any::<Index>(),
        0..columns,
        0..columns,
        0..4u8,
        any::<bool>(),
    );
    prop::collection::vec(one, 0..count).prop_map(move |picks| {
        let row = |index: Index| index.index(rows as usize) as u64;
        picks
            .into_iter()
            .map(|(a, b, left, right, kind, swapped)| {
                let a = row(a);
                let (left, right) = match kind {
                    0 => ((left, a), (right, (a + 1) % rows)),
                    1 => ((left, a), (right, row(b))),
                    2 => ((left, a), (0, b.index(3) as u64 % rows)),
                    _ => ((left, a), (right, a)),
                };
                if swapped { (right, left) } else { (left, right) }
            })
            .collect()
    })
}

/// A circuit of nothing but copies between advice cells.
#[derive(Clone)]
struct OnlyCopies {
    rows: u64,
    copies: Vec<Copy>,
}

/// Columns of the circuit.
const COLUMNS: usize = 4;

impl Circuit<Stock> for OnlyCopies {
    type Config = [Column<Advice>; COLUMNS];
    type FloorPlanner = SimpleFloorPlanner;
    type Params = ();

    fn without_witnesses(&self) -> Self {
        self.clone()
    }

    fn configure(cs: &mut ConstraintSystem<Stock>) -> Self::Config {
        let columns = [(); COLUMNS].map(|()| cs.advice_column());
        for column in columns {
            cs.enable_equality(column);
        }
        columns
    }

    fn synthesize(
        &self,
        columns: Self::Config,
        mut layouter: impl Layouter<Stock>,
    ) -> Result<(), stock_halo2_axiom::plonk::Error> {
        layouter.assign_region(
            || "copies",
            |mut region| {
                let cells: Vec<Vec<Cell>> = columns
                    .iter()
                    .map(|column| {
                        (0..self.rows as usize)
                            .map(|row| {
                                region
                                    .assign_advice(*column, row, Value::known(Stock::ZERO))
                                    .cell()
                            })
                            .collect()
                    })
                    .collect();
                for (left, right) in &self.copies {
                    let cell = |(column, row): (usize, u64)| cells[column][row as usize];
                    region.constrain_equal(cell(*left), cell(*right));
                }
                Ok(())
            },
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_permutation_is_what_memory_would_hold(
        (columns, rows, copies) in (1..5usize, prop_oneof![Just(1u64), Just(37), Just(600), Just(20_000)])
            .prop_flat_map(|(columns, rows)| (Just(columns), Just(rows), copies(columns, rows, 2000)))
    ) {
        let wanted = naive(columns, rows, &copies);
        let (omega, delta) = (omega(15), converted::<Stock, Fr>(&Stock::DELTA));
        let powers: Vec<Fr> = std::iter::successors(Some(Fr::from(1u64)), |power| Some(*power * omega))
            .take(rows as usize)
            .collect();
        on_one_and_two_threads(|| {
            // Less than half of the larger maps fits their share.
            let place = place(1 << 20);
            let mut assembly = assembled(&place, columns, rows, &copies);
            for (column, images) in wanted.iter().enumerate() {
                for (row, image) in images.iter().enumerate().step_by(1 + rows as usize / 100) {
                    assert_eq!(assembly.mapping(column, row as u64).unwrap(), *image);
                }
                let names: Vec<Fr> = images.iter().map(|(c, r)| delta.pow([*c as u64]) * powers[*r as usize]).collect();
                let sigma = assembly.sigma(column, omega, delta).unwrap();
                assert_eq!(sigma.to_vec().unwrap(), names);
            }
            assert!(place.workspace.budget.peak_bytes() <= 1 << 20);
            drop(assembly);
            assert_eq!(place.workspace.budget.held_bytes(), 0);
        });
    }

    #[test]
    fn sigma_columns_are_the_stock_crate_s(copies in copies(COLUMNS, 26, 120), k in 5..7u32) {
        // Blinding takes the last six of 32 rows.
        let circuit = OnlyCopies { rows: 26, copies };
        let params = ParamsKZG::<Bn256>::setup(k, ChaCha20Rng::seed_from_u64(1));
        let vk = keygen_vk(&params, &circuit).unwrap();
        let pk = keygen_pk::<G1Affine, _, _>(&params, vk, &circuit).unwrap();
        let place = place(1 << 20);
        let mut assembly = assembled(&place, COLUMNS, 1 << k, &circuit.copies);
        for (column, wanted) in pk.permutation().permutations().iter().enumerate() {
            let sigma = assembly.sigma(column, omega(k), converted::<Stock, Fr>(&Stock::DELTA)).unwrap();
            let ours: Vec<Stock> = sigma.to_vec().unwrap().iter().map(converted).collect();
            prop_assert!(ours == wanted[..], "column {} of k = {}", column, k);
        }
    }
}

#[test]
fn nothing_copied_takes_nothing_and_is_the_identity() {
    let place = place(1 << 20);
    // Sparse files: there are not so many bytes here.
    let mut assembly = Copies::new(&place.workspace, 3, 1 << 14).unwrap();
    assembly.copy((1, 7), (1, 7)).unwrap();
    assert_eq!(assembly.mapping(2, (1 << 14) - 1).unwrap(), (2, (1 << 14) - 1));
    let sigma = assembly
        .sigma(1, omega(14), converted::<Stock, Fr>(&Stock::DELTA))
        .unwrap()
        .to_vec()
        .unwrap();
    let mut wanted = converted::<Stock, Fr>(&Stock::DELTA);
    for name in sigma {
        assert_eq!(name, wanted);
        wanted *= omega(14);
    }
}

#[test]
fn the_first_sigma_column_gives_memory_back_and_copies_may_go_on() {
    let place = place(64 << 20);
    let (columns, rows) = (4, 1 << 17);
    let far = |i: u64| (((i % 4) as usize, i), ((i % 3) as usize, (i * i + 7) % rows));
    let copies: Vec<Copy> = (0..rows).map(far).collect();
    let (before, after) = copies.split_at(100_000);
    let mut assembly = assembled(&place, columns, rows, before);
    let held = place.workspace.budget.held_bytes();
    let images = naive(columns, rows, before);
    let name = |(column, row): (usize, u64)| {
        converted::<Stock, Fr>(&Stock::DELTA).pow([column as u64]) * omega(17).pow([row])
    };
    let check = |assembly: &mut Copies, images: &[Vec<(usize, u64)>]| {
        for (column, images) in images.iter().enumerate() {
            let sigma = assembly
                .sigma(column, omega(17), converted::<Stock, Fr>(&Stock::DELTA))
                .unwrap()
                .to_vec()
                .unwrap();
            let wrong = (0..rows as usize)
                .step_by(11)
                .find(|&row| sigma[row] != name(images[row]));
            assert_eq!(wrong, None, "row of column {column}");
        }
    };
    check(&mut assembly, &images);
    assert!(
        place.workspace.budget.held_bytes() < held * 2 / 3,
        "{:?}",
        place.workspace.budget
    );
    for (left, right) in &after[..50] {
        assembly.copy(*left, *right).unwrap();
    }
    check(&mut assembly, &naive(columns, rows, &copies[..100_050]));
}

#[test]
fn more_cells_than_32_bits_name() {
    let place = place(64 << 20);
    let rows = 1u64 << 31;
    let mut assembly = Copies::new(&place.workspace, 2, rows).unwrap();
    let (far, near) = ((1, rows - 1), (0, 0));
    assembly.copy(far, near).unwrap();
    assembly.copy(near, (0, rows - 1)).unwrap();
    assert_eq!(assembly.mapping(1, rows - 1).unwrap(), near);
    assert_eq!(assembly.mapping(0, 0).unwrap(), (0, rows - 1));
    assert_eq!(assembly.mapping(0, rows - 1).unwrap(), far);
    assert_eq!(assembly.mapping(1, 5).unwrap(), (1, 5));
}

#[test]
fn cells_outside_are_refused() {
    let place = place(1 << 20);
    let mut assembly = Copies::new(&place.workspace, 2, 8).unwrap();
    for refused in [
        assembly.copy((2, 0), (0, 0)),
        assembly.copy((0, 0), (1, 8)),
        assembly.mapping(0, 8).map(|_| ()),
        assembly
            .sigma(2, omega(3), converted::<Stock, Fr>(&Stock::DELTA))
            .map(|_| ()),
        Copies::new(&place.workspace, 8, u64::MAX).map(|_| ()),
    ] {
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    assert_eq!(assembly.mapping(0, 0).unwrap(), (0, 0));
}
