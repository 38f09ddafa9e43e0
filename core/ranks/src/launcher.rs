//! Whether a launcher of MPI started this process: the environment says so before MPI does.
//!
//! In: variables of the environment. Out: yes or no, and the place that the launcher gave this process. A
//! program that was built without MPI can so refuse to run as one of many that know nothing of each other.

/// What a launcher said in the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The rank, where it is said.
    pub rank: Option<usize>,
    /// The number of ranks, where it is said.
    pub size: Option<usize>,
}

/// Names of a rank's variable, and of that with the number of ranks: of Hydra (MPICH, Intel MPI) and of PMI
/// under Slurm, of Open MPI, of MVAPICH, of PALS, of Flux, and of PMIx, which says no number.
const VARIABLES: [(&str, &str); 6] = [
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PALS_RANKID", "PALS_NRANKS"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
];

/// Variables that say only that there is a launcher.
const MARKS: [&str; 2] = ["PMI_FD", "PMI_PORT"];

/// What the launcher of MPI said, if there is one.
pub fn launched() -> Option<Launched> {
    launched_by(|name| std::env::var(name).ok())
}

/// Whether `mpirun`, `mpiexec`, or `srun` with MPI started this process.
pub fn is_started_by_mpi() -> bool {
    launched().is_some()
}

fn launched_by(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name: &str| variable(name).and_then(|value| value.trim().parse().ok());
    let known = VARIABLES.iter().find(|(rank, _)| variable(rank).is_some());
    if let Some((rank, size)) = known {
        return Some(Launched {
            rank: number(rank),
            size: number(size),
        });
    }
    if MARKS.iter().any(|name| variable(name).is_some()) {
        return Some(Launched {
            rank: None,
            size: None,
        });
    }
    // A step of srun with several tasks. One task may be any program of a batch script.
    let tasks = number("SLURM_STEP_NUM_TASKS").filter(|tasks| *tasks > 1)?;
    Some(Launched {
        rank: number("SLURM_PROCID"),
        size: Some(tasks),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<Launched> {
        launched_by(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let second_of_four = Some(Launched {
            rank: Some(1),
            size: Some(4),
        });
        assert_eq!(of(&[("PMI_RANK", "1"), ("PMI_SIZE", "4")]), second_of_four);
        assert_eq!(
            of(&[
                ("PMIX_RANK", "1"),
                ("OMPI_COMM_WORLD_RANK", "1"),
                ("OMPI_COMM_WORLD_SIZE", "4")
            ]),
            second_of_four
        );
        assert_eq!(
            of(&[("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "1")]),
            second_of_four
        );
        assert_eq!(
            of(&[("PMI_FD", "9")]),
            Some(Launched {
                rank: None,
                size: None
            })
        );
    }

    #[test]
    fn other_programs_are_not_launched() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_PROCID", "0")]), None);
        assert_eq!(of(&[("SLURM_JOB_ID", "7"), ("SLURM_PROCID", "0")]), None);
    }
}
