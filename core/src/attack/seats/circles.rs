//! Circles of a directed graph: places on one can be taken by turning it.

/// The strongly connected component of every node (Tarjan), without recursion.
pub(super) fn strongly_connected(nodes: usize, arcs: &[(u32, u32)]) -> Vec<u32> {
    let mut starts = vec![0_usize; nodes + 1];
    arcs.iter().for_each(|(from, _)| starts[*from as usize + 1] += 1);
    (0..nodes).for_each(|at| starts[at + 1] += starts[at]);
    let (mut ends, mut targets) = (starts.clone(), vec![0_u32; arcs.len()]);
    for &(from, to) in arcs {
        targets[ends[from as usize]] = to;
        ends[from as usize] += 1;
    }
    const NEW: u32 = u32::MAX;
    let (mut order, mut low, mut found) = (vec![NEW; nodes], vec![0_u32; nodes], vec![NEW; nodes]);
    let (mut stack, mut path, mut clock, mut number) = (Vec::new(), Vec::new(), 0, 0);
    for root in 0..nodes {
        if order[root] != NEW {
            continue;
        }
        path.push((root, starts[root]));
        while let Some((node, next)) = path.pop() {
            if order[node] == NEW {
                (order[node], low[node]) = (clock, clock);
                clock += 1;
                stack.push(node);
            }
            if next > starts[node] {
                let child = targets[next - 1] as usize;
                if found[child] == NEW {
                    low[node] = low[node].min(low[child]);
                }
            }
            let mut at = next;
            while at < starts[node + 1] && order[targets[at] as usize] != NEW {
                let seen = targets[at] as usize;
                if found[seen] == NEW {
                    low[node] = low[node].min(order[seen]);
                }
                at += 1;
            }
            if at < starts[node + 1] {
                path.push((node, at + 1));
                path.push((targets[at] as usize, starts[targets[at] as usize]));
                continue;
            }
            if low[node] == order[node] {
                while let Some(top) = stack.pop() {
                    found[top] = number;
                    if top == node {
                        break;
                    }
                }
                number += 1;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_of_a_graph() {
        let found = strongly_connected(6, &[(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3), (5, 0)]);
        assert_eq!(found[0], found[1]);
        assert_eq!(found[1], found[2]);
        assert_eq!(found[3], found[4]);
        assert!(found[0] != found[3] && found[5] != found[0] && found[5] != found[3]);
    }
}
