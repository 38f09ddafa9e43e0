//! Reads whole files in memory, with every check, and writes them again from what was read: what is accepted
//! must be the same bytes.

use ark_ec::short_weierstrass::SWCurveConfig;
use spillproof_format::iden3::{
    ByteRange, FileKind, Matrix, SectionWalk, Sections, check_scalar, ptau, r1cs, write_prefix,
    write_section_prefix, wtns, zkey,
};
use spillproof_format::native::NativeField;
use spillproof_format::{Curve, Element, FormatError};

pub fn walk(kind: FileKind, file: &[u8]) -> Result<Sections, FormatError> {
    let mut walk = SectionWalk::new(kind, file.len() as u64);
    while let Some((offset, bytes)) = walk.next_read() {
        walk.give(&file[offset as usize..][..bytes])?;
    }
    walk.finish()
}

pub fn cut(file: &[u8], range: ByteRange) -> &[u8] {
    &file[range.offset as usize..range.end() as usize]
}

pub fn read_header(file: &[u8], sections: &Sections) -> Result<zkey::Header, FormatError> {
    let ranges = zkey::HeaderRanges::of(sections)?;
    zkey::Header::parse(sections, cut(file, ranges.protocol), cut(file, ranges.header))
}

pub fn read_key(file: &[u8]) -> Result<(zkey::Header, zkey::Layout), FormatError> {
    let sections = walk(FileKind::Zkey, file)?;
    let header = read_header(file, &sections)?;
    let count = zkey::HeaderRanges::of(&sections)?.coefficient_count;
    let layout = zkey::Layout::new(&sections, &header, cut(file, count).try_into().unwrap())?;
    Ok((header, layout))
}

pub fn read_witness(file: &[u8]) -> Result<(wtns::Header, ByteRange), FormatError> {
    let sections = walk(FileKind::Wtns, file)?;
    let range = wtns::Header::range(&sections)?;
    let header = wtns::Header::parse(&sections, cut(file, range))?;
    Ok((header, header.values(&sections)?))
}

pub fn read_system(file: &[u8], piece_bytes: usize) -> Result<(r1cs::Header, Vec<r1cs::Term>), FormatError> {
    let sections = walk(FileKind::R1cs, file)?;
    let header = r1cs::Header::parse(&sections, cut(file, r1cs::Header::range(&sections)?))?;
    let layout = r1cs::Layout::new(&sections, &header)?;
    let mut constraints = r1cs::Constraints::new(&header, &layout);
    let mut terms = Vec::new();
    for piece in cut(file, layout.constraints).chunks(piece_bytes) {
        constraints.give(piece, |term| {
            terms.push(term);
            Ok::<_, FormatError>(())
        })?;
    }
    constraints.finish()?;
    Ok((header, terms))
}

pub fn read_powers(file: &[u8]) -> Result<(ptau::Header, ptau::Layout), FormatError> {
    let sections = walk(FileKind::Ptau, file)?;
    let header = ptau::Header::parse(&sections, cut(file, ptau::Header::range(&sections)?))?;
    let layout = ptau::Layout::new(&sections, &header)?;
    Ok((header, layout))
}

/// The file, with what was parsed of it in its place. (All of the constraints, coefficients and headers is;
/// points and labels are copied.)
pub fn read_back(kind: FileKind, file: &[u8]) -> Result<Vec<u8>, FormatError> {
    let sections = walk(kind, file)?;
    let parsed = match kind {
        FileKind::Zkey => key_back(file)?,
        FileKind::Wtns => witness_back(file)?,
        FileKind::R1cs => system_back(file)?,
        FileKind::Ptau => powers_back(file)?,
    };
    let mut out = Vec::new();
    write_prefix(kind, sections.iter().len() as u32, &mut out);
    for (id, range) in sections.iter() {
        let content = match parsed.iter().find(|(parsed_id, _)| *parsed_id == id) {
            Some((_, content)) => content,
            None => cut(file, range),
        };
        write_section_prefix(id, content.len() as u64, &mut out);
        out.extend(content);
    }
    Ok(out)
}

type Parsed = Vec<(u32, Vec<u8>)>;

fn key_back(file: &[u8]) -> Result<Parsed, FormatError> {
    let (header, layout) = read_key(file)?;
    let header_bytes = match header.curve() {
        Curve::Bls12381 => header_back::<ark_bls12_381::g1::Config, ark_bls12_381::g2::Config>(&header)?,
        _ => header_back::<ark_bn254::g1::Config, ark_bn254::g2::Config>(&header)?,
    };
    let mut coefficients = (layout.coefficients.count as u32).to_le_bytes().to_vec();
    let records = cut(file, layout.coefficients.byte_range()).chunks_exact(zkey::COEFFICIENT_BYTES);
    for (index, record) in (0..).zip(records) {
        let coefficient = zkey::Coefficient::decode(record);
        coefficient.check(index, layout.coefficients.coefficient_offset(index), &header)?;
        let mut bytes = [0; zkey::COEFFICIENT_BYTES];
        coefficient.encode(&mut bytes);
        coefficients.extend(bytes);
    }
    let ranges = [layout.ic, layout.a, layout.b1, layout.b2, layout.c, layout.h];
    for range in ranges {
        assert!(range.byte_range().end() <= file.len() as u64, "{}", range.what);
    }
    Ok(vec![
        (zkey::PROTOCOL, zkey::GROTH16.to_le_bytes().to_vec()),
        (zkey::HEADER, header_bytes),
        (zkey::COEFFICIENTS, coefficients),
    ])
}

fn header_back<G1: SWCurveConfig, G2: SWCurveConfig>(header: &zkey::Header) -> Result<Vec<u8>, FormatError>
where
    G1::BaseField: NativeField,
    G2::BaseField: NativeField,
{
    let points = header.verifying_points::<G1, G2>()?;
    let mut bytes = Vec::new();
    zkey::Header::new(header.signals(), header.public(), header.log_domain(), &points)?.encode(&mut bytes);
    Ok(bytes)
}

fn witness_back(file: &[u8]) -> Result<Parsed, FormatError> {
    let (header, values) = read_witness(file)?;
    for (index, value) in (0..).zip(cut(file, values).as_chunks().0) {
        check_scalar(header.curve, "values", index, values.offset + 32 * index, value)?;
    }
    let mut bytes = Vec::new();
    header.encode(&mut bytes)?;
    Ok(vec![(wtns::HEADER, bytes)])
}

fn system_back(file: &[u8]) -> Result<Parsed, FormatError> {
    let (header, terms) = read_system(file, 50)?;
    let (mut header_bytes, mut constraints) = (Vec::new(), Vec::new());
    header.encode(&mut header_bytes);
    let mut terms = terms.into_iter().peekable();
    for constraint in 0..header.constraints {
        for matrix in [Matrix::A, Matrix::B, Matrix::C] {
            let is_here = |term: &r1cs::Term| (term.constraint, term.matrix) == (constraint, matrix);
            let combination: Vec<_> = std::iter::from_fn(|| terms.next_if(is_here))
                .map(|term| (term.wire, term.value))
                .collect();
            r1cs::write_linear_combination(&combination, &mut constraints)?;
        }
    }
    Ok(vec![
        (r1cs::HEADER, header_bytes),
        (r1cs::CONSTRAINTS, constraints),
    ])
}

fn powers_back(file: &[u8]) -> Result<Parsed, FormatError> {
    let (header, layout) = read_powers(file)?;
    if let Some(prepared) = layout.prepared {
        for k in 0..=header.power {
            let basis = ptau::basis(&prepared.lagrange_g1, k)?;
            assert!(basis.byte_range().end() <= prepared.lagrange_g1.byte_range().end());
        }
    }
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    Ok(vec![(ptau::HEADER, bytes)])
}
