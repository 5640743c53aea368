//! Counting: every published row is somebody else, so who can be where is a question of seats.
//!
//! The reader knows everybody's quasi-identifiers and which classes cover them. A world puts a different person on every
//! published row, and in it no two rows contradict a dependency. Three people of one x are on three rows of one s where
//! `x -> s`, and if a class has three such rows only once, everybody knows whose they are: no single row says so, their
//! number does. [`possible_places`] computes for every person and every kind of row whether some world has them there.
//!
//! 1. *Answers.* A dependency asks a question for every left side: what is its right side? Somebody in some seat uses one
//!    answer. A world is a way to fill all seats that uses no two answers of one question.
//! 2. *Components.* People and seats that neither a possible place nor an open question connects are looked at by
//!    themselves; so a class that overlaps with no other is mostly a component of its own.
//! 3. *Filling* is a flow from seats to people, where those who are alike are one node. The source itself is the first
//!    world. In the residual graph of a world, places on a cycle are possible as well.
//! 4. *Trying.* For every place that is left, a person is put there, what contradicts it is emptied and filled again along
//!    augmenting paths, and where the flow uses two answers of one question, each is tried in turn. A place for which all
//!    of that fails is impossible: the search is complete.
//!
//! Finding everything is NP-hard. A component may take [`MAX_STEPS`] steps; places that were not decided until then are
//! [`Place::Unknown`], and whoever counts must say so.

use std::collections::HashMap;

use super::chase::{BitSet, Crowds, Member, Numbered, View, count_crowds};

/// Most steps that the search of one component may take.
pub const MAX_STEPS: u64 = 1 << 26;

/// Most steps that may be spent on one place.
const MAX_TRIAL: u64 = 1 << 20;

/// Components of up to this many places are searched for cycles again after every world that was found.
const SMALL: usize = 1 << 10;

/// People who are alike to a reader: of one profile, and covered by the same classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct People {
    /// Their quasi-identifiers, by place among the profiles.
    pub profile: usize,
    /// How many there are.
    pub number: u32,
}

/// Published rows of one class that look alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// Their plain columns, by place among the plains.
    pub plain: usize,
    /// How many there are.
    pub rows: u32,
    /// Who may be there, by number, and whether the source has some of them beside these plain columns.
    pub candidates: Vec<(u32, bool)>,
}

/// Whether people can be on rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In some world they are.
    Possible,
    /// In no world they are.
    Impossible,
    /// The search ran out of steps.
    Unknown,
}

/// For every seat, whether each of its candidates can be there. Profiles, plains and dependencies are those of the view;
/// dependencies that may fail in some rows rule nobody out by counting.
pub fn possible_places(view: &View, people: &[People], seats: &[Seat], max_steps: u64) -> Vec<Vec<Place>> {
    let certain = view.dependencies.iter().filter(|(_, tolerance)| *tolerance == 0.0);
    let dependencies: Vec<Numbered> = certain.map(|given| Numbered::new(view, given)).collect();
    let mut graph = Graph::new(&dependencies, people, seats);
    for component in graph.component_places() {
        graph.decide_component(&component, max_steps);
    }
    let mut found: Vec<Vec<Place>> = seats.iter().map(|seat| vec![Place::Unknown; seat.candidates.len()]).collect();
    for (edge, place) in graph.edges.iter().zip(&graph.places) {
        found[edge.seat as usize][edge.at as usize] = *place;
    }
    found
}

/// What is left of a class, given its seats and who can be there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// Among how many rows people can hide, if whoever is not decided can be where they may be.
    pub crowds: Crowds,
    /// Rows that a set of fewer than k rows may be left for, if they cannot.
    pub undecided: u64,
}

/// Counts the rows of a class among which people can hide.
pub fn count_hiding_rows(seats: &[Seat], places: &[Vec<Place>], k: u64) -> Counted {
    let mut numbers: HashMap<u32, usize> = HashMap::new();
    for (person, _) in seats.iter().flat_map(|seat| &seat.candidates) {
        let next = numbers.len();
        numbers.entry(*person).or_insert(next);
    }
    let hide = |fits: &dyn Fn(Place) -> bool| {
        let member = |(seat, places): (&Seat, &Vec<Place>)| {
            let [mut fitting, mut people] = [0, 1].map(|_| BitSet::with_len(numbers.len()));
            for ((person, occurs), place) in seat.candidates.iter().zip(places) {
                if fits(*place) {
                    fitting.insert(numbers[person]);
                }
                if *occurs && *place != Place::Impossible {
                    people.insert(numbers[person]);
                }
            }
            Member { rows: u64::from(seat.rows), fitting, people }
        };
        count_crowds(&seats.iter().zip(places).map(member).collect::<Vec<_>>())
    };
    let crowds = hide(&|place| place != Place::Impossible);
    let is_decided = places.iter().flatten().all(|place| *place != Place::Unknown);
    let mut undecided = 0;
    if !is_decided {
        let least = hide(&|place| place == Place::Possible).smallest;
        let open = |(most, least): (&u64, &u64)| *most >= k && *least < k;
        let both = crowds.smallest.iter().zip(&least);
        undecided = seats.iter().zip(both).filter(|(_, both)| open(*both)).map(|(seat, _)| u64::from(seat.rows)).sum();
    }
    Counted { crowds, undecided }
}

/// A place: a seat and people who may be there.
#[derive(Debug, Clone, Copy)]
struct Edge {
    seat: u32,
    person: u32,
    /// Which candidate of the seat.
    at: u32,
    /// Where its answers begin.
    answers: u32,
    occurs: bool,
}

/// A change that can be undone.
#[derive(Debug, Clone, Copy)]
enum Change {
    Flow { edge: u32, by: i64 },
    Chosen { question: u32 },
}

const OPEN: u32 = u32::MAX;

#[derive(Debug, Default)]
struct Graph {
    edges: Vec<Edge>,
    of_seat: Vec<Vec<u32>>,
    of_person: Vec<Vec<u32>>,
    rows: Vec<i64>,
    number: Vec<i64>,
    /// Answers that edges use, as many for each as there are dependencies.
    answers: Vec<u32>,
    width: usize,
    /// The question of every answer, the edges that use it, and the answers of every question.
    question: Vec<u32>,
    users: Vec<Vec<u32>>,
    of_question: Vec<Vec<u32>>,

    places: Vec<Place>,
    flow: Vec<i64>,
    /// Rows of a seat that are empty, people who are seated.
    empty: Vec<i64>,
    seated: Vec<i64>,
    /// The answer that is taken for granted.
    chosen: Vec<u32>,
    /// Flow by answer, and answers with flow by question.
    used: Vec<i64>,
    in_use: Vec<u32>,
    /// Questions that may have two answers in use.
    torn: Vec<u32>,
    /// The place that one person does not leave.
    pinned: Option<u32>,
    /// Only places that the source has are filled.
    only_occurring: bool,
    log: Vec<Change>,
    steps: u64,
    /// For augmenting: when a seat was last seen, and from where.
    seen: Vec<u64>,
    came: Vec<(u32, u32)>,
    turn: u64,
}

impl Graph {
    fn new(dependencies: &[Numbered], people: &[People], seats: &[Seat]) -> Self {
        let mut graph = Self {
            of_seat: vec![Vec::new(); seats.len()],
            of_person: vec![Vec::new(); people.len()],
            rows: seats.iter().map(|seat| i64::from(seat.rows)).collect(),
            number: people.iter().map(|people| i64::from(people.number)).collect(),
            width: dependencies.len(),
            ..Self::default()
        };
        let mut questions = HashMap::new();
        let mut numbers = HashMap::new();
        for (seat, given) in seats.iter().enumerate() {
            for (at, &(person, occurs)) in given.candidates.iter().enumerate() {
                let edge = graph.edges.len() as u32;
                let answers = graph.answers.len() as u32;
                let profile = people[person as usize].profile;
                for (number, dependency) in dependencies.iter().enumerate() {
                    let next = questions.len() as u32;
                    let question =
                        *questions.entry((number, dependency.left_side(profile, given.plain))).or_insert(next);
                    let next = numbers.len() as u32;
                    let answer =
                        *numbers.entry((question, dependency.right_side(profile, given.plain))).or_insert(next);
                    if question as usize == graph.of_question.len() {
                        graph.of_question.push(Vec::new());
                    }
                    if answer == next {
                        graph.question.push(question);
                        graph.users.push(Vec::new());
                        graph.of_question[question as usize].push(answer);
                    }
                    graph.users[answer as usize].push(edge);
                    graph.answers.push(answer);
                }
                graph.edges.push(Edge { seat: seat as u32, person, at: at as u32, answers, occurs });
                graph.of_seat[seat].push(edge);
                graph.of_person[person as usize].push(edge);
            }
        }
        graph.places = vec![Place::Unknown; graph.edges.len()];
        graph.flow = vec![0; graph.edges.len()];
        graph.empty = graph.rows.clone();
        graph.seated = vec![0; people.len()];
        graph.chosen = vec![OPEN; graph.of_question.len()];
        graph.used = vec![0; graph.question.len()];
        graph.in_use = vec![0; graph.of_question.len()];
        graph.seen = vec![0; seats.len()];
        graph.came = vec![(0, 0); seats.len()];
        graph
    }

    fn answers_of(&self, edge: u32) -> std::ops::Range<usize> {
        let first = self.edges[edge as usize].answers as usize;
        first..first + self.width
    }

    /// Step 2: the places of every component.
    fn component_places(&self) -> Vec<Vec<u32>> {
        let mut parent: Vec<u32> = (0..(self.rows.len() + self.number.len()) as u32).collect();
        fn find_root(parent: &mut [u32], mut at: u32) -> u32 {
            while parent[at as usize] != at {
                parent[at as usize] = parent[parent[at as usize] as usize];
                at = parent[at as usize];
            }
            at
        }
        let mut join = |a: u32, b: u32| {
            let (a, b) = (find_root(&mut parent, a), find_root(&mut parent, b));
            parent[a.max(b) as usize] = a.min(b);
        };
        self.edges.iter().for_each(|edge| join(edge.seat, self.rows.len() as u32 + edge.person));
        for answers in self.of_question.iter().filter(|answers| answers.len() > 1) {
            let mut seats = answers.iter().flat_map(|&answer| &self.users[answer as usize]);
            let seat = |edge: &u32| self.edges[*edge as usize].seat;
            if let Some(first) = seats.next().map(seat) {
                seats.map(seat).for_each(|other| join(first, other));
            }
        }
        let mut places: HashMap<u32, usize> = HashMap::new();
        let mut found: Vec<Vec<u32>> = Vec::new();
        for (edge, given) in self.edges.iter().enumerate() {
            let at = *places.entry(find_root(&mut parent, given.seat)).or_insert_with(|| {
                found.push(Vec::new());
                found.len() - 1
            });
            found[at].push(edge as u32);
        }
        found
    }

    /// Whether a place may be taken as things stand.
    fn is_open(&self, edge: u32) -> bool {
        self.places[edge as usize] != Place::Impossible
            && (!self.only_occurring || self.edges[edge as usize].occurs)
            && self.answers_of(edge).all(|at| {
                let answer = self.answers[at];
                let chosen = self.chosen[self.question[answer as usize] as usize];
                chosen == OPEN || chosen == answer
            })
    }

    fn log_flow(&mut self, edge: u32, by: i64) {
        self.apply_flow(edge, by);
        self.log.push(Change::Flow { edge, by });
    }

    fn apply_flow(&mut self, edge: u32, by: i64) {
        let Edge { seat, person, .. } = self.edges[edge as usize];
        self.flow[edge as usize] += by;
        self.empty[seat as usize] -= by;
        self.seated[person as usize] += by;
        for at in self.answers_of(edge) {
            let answer = self.answers[at] as usize;
            let question = self.question[answer];
            let before = self.used[answer];
            self.used[answer] += by;
            match (before > 0, self.used[answer] > 0) {
                (false, true) => self.in_use[question as usize] += 1,
                (true, false) => self.in_use[question as usize] -= 1,
                _ => {}
            }
            if self.in_use[question as usize] > 1 {
                self.torn.push(question);
            }
        }
    }

    fn undo_changes(&mut self, mark: usize) {
        while self.log.len() > mark {
            match self.log.pop() {
                Some(Change::Flow { edge, by }) => self.apply_flow(edge, -by),
                Some(Change::Chosen { question }) => self.chosen[question as usize] = OPEN,
                None => {}
            }
        }
    }

    /// Takes an answer for granted, and empties the seats of whoever gives another.
    fn choose_answer(&mut self, answer: u32) {
        let question = self.question[answer as usize];
        if self.chosen[question as usize] != OPEN {
            return;
        }
        self.chosen[question as usize] = answer;
        self.log.push(Change::Chosen { question });
        for at in 0..self.of_question[question as usize].len() {
            let other = self.of_question[question as usize][at];
            if other == answer || self.used[other as usize] == 0 {
                continue;
            }
            for at in 0..self.users[other as usize].len() {
                self.steps += 1;
                let edge = self.users[other as usize][at];
                if self.flow[edge as usize] > 0 {
                    self.log_flow(edge, -self.flow[edge as usize]);
                }
            }
        }
    }

    /// Fills the seats that are empty; whether all could be.
    fn fill_seats(&mut self, seats: &[u32]) -> bool {
        seats.iter().all(|&seat| {
            while self.empty[seat as usize] > 0 {
                if !self.augment_path(seat) {
                    return false;
                }
            }
            true
        })
    }

    /// Finds somebody for a seat, who may leave another seat to somebody else, and so on.
    fn augment_path(&mut self, from: u32) -> bool {
        self.turn += 1;
        self.seen[from as usize] = self.turn;
        let mut queue = vec![from];
        let mut next = 0;
        while next < queue.len() {
            let seat = queue[next];
            next += 1;
            for at in 0..self.of_seat[seat as usize].len() {
                self.steps += 1;
                let edge = self.of_seat[seat as usize][at];
                if !self.is_open(edge) {
                    continue;
                }
                let person = self.edges[edge as usize].person;
                let free = self.number[person as usize] - self.seated[person as usize];
                if free > 0 {
                    self.shift_path(from, edge, free);
                    return true;
                }
                for at in 0..self.of_person[person as usize].len() {
                    self.steps += 1;
                    let back = self.of_person[person as usize][at];
                    let other = self.edges[back as usize].seat;
                    if self.seen[other as usize] != self.turn && self.can_leave(back) > 0 {
                        self.seen[other as usize] = self.turn;
                        self.came[other as usize] = (edge, back);
                        queue.push(other);
                    }
                }
            }
        }
        false
    }

    fn can_leave(&self, edge: u32) -> i64 {
        self.flow[edge as usize] - i64::from(self.pinned == Some(edge))
    }

    /// Seats people along a path that ends with a free person.
    fn shift_path(&mut self, from: u32, last: u32, free: i64) {
        let mut by = free.min(self.empty[from as usize]);
        let mut seat = self.edges[last as usize].seat;
        while seat != from {
            let (edge, back) = self.came[seat as usize];
            by = by.min(self.can_leave(back));
            seat = self.edges[edge as usize].seat;
        }
        let mut edge = last;
        loop {
            let seat = self.edges[edge as usize].seat;
            if seat == from {
                self.log_flow(edge, by);
                return;
            }
            let (before, back) = self.came[seat as usize];
            self.log_flow(back, -by);
            self.log_flow(edge, by);
            edge = before;
        }
    }

    /// Step 4: fills all seats with at most one answer per question; `None` if the steps are used up.
    fn search_seating(&mut self, seats: &[u32], until: u64) -> Option<bool> {
        // Seats that were emptied stand in the log, so nothing else has to be looked at.
        if self.steps > until {
            return None;
        }
        let emptied: Vec<u32> = seats.iter().copied().filter(|&seat| self.empty[seat as usize] > 0).collect();
        if !self.fill_seats(&emptied) {
            return Some(false);
        }
        let question = loop {
            match self.torn.pop() {
                None => return Some(true),
                Some(question) if self.in_use[question as usize] > 1 => break question,
                Some(_) => {}
            }
        };
        let mut answers = self.of_question[question as usize].clone();
        answers.sort_by_key(|&answer| std::cmp::Reverse(self.used[answer as usize]));
        let mut decided = true;
        for answer in answers {
            let mark = self.log.len();
            self.choose_answer(answer);
            let emptied = self.emptied_since(mark);
            match self.search_seating(&emptied, until) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => decided = false,
            }
            self.undo_changes(mark);
            if self.steps > until {
                return None;
            }
        }
        self.torn.push(question);
        decided.then_some(false)
    }

    fn emptied_since(&self, mark: usize) -> Vec<u32> {
        let mut seats: Vec<u32> = self.log[mark..]
            .iter()
            .filter_map(|change| if let Change::Flow { edge, .. } = change { Some(*edge) } else { None })
            .map(|edge| self.edges[edge as usize].seat)
            .collect();
        seats.sort_unstable();
        seats.dedup();
        seats
    }

    /// Decides the places of a component.
    fn decide_component(&mut self, component: &[u32], max_steps: u64) {
        let mut seats: Vec<u32> = component.iter().map(|&edge| self.edges[edge as usize].seat).collect();
        seats.sort_unstable();
        seats.dedup();
        self.steps = 0;
        self.log.clear();
        self.torn.clear();
        // The source is a world, but for dependencies that do not hold in it.
        self.only_occurring = true;
        let mut first = self.search_seating(&seats, max_steps / 4) == Some(true);
        self.only_occurring = false;
        if !first {
            self.undo_changes(0);
            self.torn.clear();
            first = self.search_seating(&seats, max_steps) == Some(true);
        }
        if !first {
            // No world, or none was found: nothing is certain.
            self.undo_changes(0);
            return;
        }
        // The answers of this world are taken back: they were tried, not proved.
        let flows: Vec<(u32, i64)> = component.iter().map(|&edge| (edge, self.flow[edge as usize])).collect();
        self.undo_changes(0);
        flows.iter().filter(|(_, flow)| *flow > 0).for_each(|&(edge, flow)| self.apply_flow(edge, flow));
        self.torn.clear();
        self.mark_component(component);
        for &edge in component {
            if self.places[edge as usize] != Place::Unknown || self.steps > max_steps {
                continue;
            }
            let until = max_steps.min(self.steps + MAX_TRIAL);
            let found = self.seat_somebody(edge).then(|| {
                let emptied = self.emptied_since(0);
                self.search_seating(&emptied, until)
            });
            match found {
                Some(Some(true)) => {
                    for at in 0..self.log.len() {
                        if let Change::Flow { edge, .. } = self.log[at]
                            && self.flow[edge as usize] > 0
                        {
                            self.places[edge as usize] = Place::Possible;
                        }
                    }
                    self.places[edge as usize] = Place::Possible;
                    if component.len() <= SMALL {
                        self.mark_component(component);
                    }
                }
                Some(Some(false)) | None => self.places[edge as usize] = Place::Impossible,
                Some(None) => {}
            }
            self.undo_changes(0);
            self.pinned = None;
            self.torn.clear();
        }
    }

    /// Puts somebody in a place where nobody is in the first world, and takes for granted what follows; whether that is
    /// possible at all.
    fn seat_somebody(&mut self, edge: u32) -> bool {
        let Edge { seat, person, .. } = self.edges[edge as usize];
        for at in self.answers_of(edge) {
            self.choose_answer(self.answers[at]);
        }
        if self.empty[seat as usize] == 0 {
            let Some(&other) = self.of_seat[seat as usize].iter().find(|&&other| self.flow[other as usize] > 0) else {
                return false;
            };
            self.log_flow(other, -1);
        }
        if self.seated[person as usize] == self.number[person as usize] {
            let Some(&other) = self.of_person[person as usize].iter().find(|&&other| self.flow[other as usize] > 0)
            else {
                return false;
            };
            self.log_flow(other, -1);
        }
        self.log_flow(edge, 1);
        self.pinned = Some(edge);
        true
    }

    /// Step 3: marks what the flow uses, and what it could use instead without another answer.
    fn mark_component(&mut self, component: &[u32]) {
        // One answer for every question, that in use where there is one.
        let mut taken: HashMap<u32, u32> = HashMap::new();
        for &edge in component {
            for at in self.answers_of(edge) {
                let answer = self.answers[at];
                if self.used[answer as usize] > 0 || self.chosen[self.question[answer as usize] as usize] == answer {
                    taken.insert(self.question[answer as usize], answer);
                }
            }
        }
        for &edge in component {
            let open = self.places[edge as usize] != Place::Impossible;
            for at in self.answers_of(edge).filter(|_| open) {
                taken.entry(self.question[self.answers[at] as usize]).or_insert(self.answers[at]);
            }
        }
        self.steps += component.len() as u64;
        let agrees = |edge: u32| {
            self.places[edge as usize] != Place::Impossible
                && self
                    .answers_of(edge)
                    .all(|at| taken.get(&self.question[self.answers[at] as usize]) == Some(&self.answers[at]))
        };
        // Nodes: seats, people, and one for people who are not seated.
        let mut nodes: HashMap<u32, u32> = HashMap::new();
        let shift = self.rows.len() as u32;
        let mut arcs: Vec<(u32, u32)> = Vec::new();
        let mut node = |name: u32| {
            let next = nodes.len() as u32 + 1;
            *nodes.entry(name).or_insert(next)
        };
        let mut open = Vec::new();
        for &edge in component.iter().filter(|&&edge| agrees(edge)) {
            let Edge { seat, person, .. } = self.edges[edge as usize];
            let (seat, of_person) = (node(seat), node(shift + person));
            arcs.push((seat, of_person));
            if self.flow[edge as usize] > 0 {
                arcs.push((of_person, seat));
            }
            if self.seated[person as usize] < self.number[person as usize] {
                arcs.push((of_person, 0));
            }
            if self.seated[person as usize] > 0 {
                arcs.push((0, of_person));
            }
            open.push((edge, seat, of_person));
        }
        let circle = strongly_connected(nodes.len() + 1, &arcs);
        for (edge, seat, person) in open {
            if self.flow[edge as usize] > 0 || circle[seat as usize] == circle[person as usize] {
                self.places[edge as usize] = Place::Possible;
            }
        }
    }
}

/// The strongly connected component of every node (Tarjan), without recursion.
fn strongly_connected(nodes: usize, arcs: &[(u32, u32)]) -> Vec<u32> {
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
    use std::collections::BTreeSet;

    use super::*;
    use crate::attack::chase::Kind;
    use crate::model::{Attribute, Dependency};

    /// A small table: quasi-identifiers and plain columns of everybody, the class of those who are published, and for every
    /// class and column the values that it covers.
    #[derive(Debug, Clone)]
    struct Small {
        quasi: Vec<Vec<u32>>,
        plain: Vec<Vec<u32>>,
        class: Vec<Option<usize>>,
        covered: Vec<Vec<BTreeSet<u32>>>,
        dependencies: Vec<Dependency>,
    }

    /// People, whom each row of the source is among; seats, class and a row of each, and the seat of each row.
    type Together = (Vec<People>, Vec<usize>, Vec<Seat>, Vec<(usize, usize)>, Vec<usize>);

    impl Small {
        /// Random tables in which one or two dependencies hold; now and then somebody is suppressed.
        fn random(rng: &mut fastrand::Rng) -> Self {
            use Attribute::{Plain, Quasi};
            let rows = rng.usize(3..8);
            let mut quasi: Vec<Vec<u32>> = (0..rows).map(|_| (0..2).map(|_| rng.u32(0..4)).collect()).collect();
            let mut plain: Vec<Vec<u32>> = (0..rows).map(|_| (0..2).map(|_| rng.u32(0..3)).collect()).collect();
            let shapes = [
                vec![(vec![Quasi(0)], vec![Plain(0)])],
                vec![(vec![Quasi(0), Quasi(1)], vec![Plain(0)])],
                vec![(vec![Plain(1)], vec![Quasi(1)])],
                vec![(vec![Quasi(0), Plain(1)], vec![Plain(0)])],
                vec![(vec![Quasi(0), Plain(1)], vec![Quasi(1)])],
                vec![(vec![Quasi(0)], vec![Plain(0)]), (vec![Quasi(1)], vec![Plain(1)])],
                vec![(vec![Quasi(0)], vec![Plain(1)]), (vec![Plain(1)], vec![Quasi(1)])],
            ];
            let dependencies: Vec<Dependency> = shapes[rng.usize(..shapes.len())]
                .iter()
                .map(|(from, to)| Dependency { from: from.clone(), to: to.clone() })
                .collect();
            for dependency in &dependencies {
                let mut function: HashMap<Vec<u32>, u32> = HashMap::new();
                for row in 0..rows {
                    let left = dependency.from.iter().map(|one| match one {
                        Quasi(at) => quasi[row][*at],
                        Plain(at) => plain[row][*at],
                    });
                    let right = *function.entry(left.collect()).or_insert_with(|| rng.u32(0..3));
                    match dependency.to[0] {
                        Quasi(at) => quasi[row][at] = right,
                        Plain(at) => plain[row][at] = right,
                    }
                }
            }
            let classes = rng.usize(1..4);
            let mut class: Vec<Option<usize>> = (0..rows).map(|_| Some(rng.usize(..classes))).collect();
            // Half of the tables are cut so that no classes overlap.
            if rng.bool() {
                class = quasi.iter().map(|row| Some((row[0] / 2) as usize)).collect();
            }
            if rng.u8(..4) == 0 {
                class[rng.usize(..rows)] = None;
            }
            let mut covered = vec![vec![BTreeSet::new(); 2]; 3];
            for row in 0..rows {
                if let Some(class) = class[row] {
                    (0..2).for_each(|at| _ = covered[class][at].insert(quasi[row][at]));
                }
            }
            Self { quasi, plain, class, covered, dependencies }
        }

        fn covers(&self, class: usize, person: usize) -> bool {
            self.covered[class].iter().zip(&self.quasi[person]).all(|(covered, value)| covered.contains(value))
        }

        fn published(&self) -> Vec<usize> {
            (0..self.class.len()).filter(|&row| self.class[row].is_some()).collect()
        }

        fn side(&self, side: &[Attribute], person: usize, row: usize) -> Vec<u32> {
            let value = |one: &Attribute| match one {
                Attribute::Quasi(at) => self.quasi[person][*at],
                Attribute::Plain(at) => self.plain[row][*at],
            };
            side.iter().map(value).collect()
        }

        /// Every pair of a published row and a person of some world, by the definition: all ways to give each published row a
        /// person of its own whom its class covers, in which no two rows contradict a dependency.
        fn by_force(&self) -> BTreeSet<(usize, usize)> {
            let (mut found, mut world) = (BTreeSet::new(), Vec::new());
            self.try_all(&self.published(), &mut world, &mut found);
            found
        }

        fn try_all(&self, rows: &[usize], world: &mut Vec<usize>, found: &mut BTreeSet<(usize, usize)>) {
            let Some(&row) = rows.get(world.len()) else {
                found.extend(rows.iter().copied().zip(world.iter().copied()));
                return;
            };
            for person in 0..self.quasi.len() {
                let agrees = |(&other, &seated): (&usize, &usize)| {
                    self.dependencies.iter().all(|dependency| {
                        self.side(&dependency.from, person, row) != self.side(&dependency.from, seated, other)
                            || self.side(&dependency.to, person, row) == self.side(&dependency.to, seated, other)
                    })
                };
                if self.class[row].is_some_and(|class| self.covers(class, person))
                    && !world.contains(&person)
                    && rows.iter().zip(world.iter()).all(agrees)
                {
                    world.push(person);
                    self.try_all(rows, world, found);
                    world.pop();
                }
            }
        }

        fn view(&self) -> View {
            let dependencies = self.dependencies.iter().map(|dependency| (dependency.clone(), 0.0)).collect();
            View {
                dependencies,
                profiles: self.quasi.clone(),
                plains: self.plain.clone(),
                labels: Vec::new(),
                kinds: Vec::<Kind>::new(),
            }
        }

        /// People and seats, those who are alike together.
        fn together(&self) -> Together {
            let (mut people, mut of_person): (Vec<People>, Vec<usize>) = (Vec::new(), Vec::new());
            for person in 0..self.quasi.len() {
                let alike = |one: &People| self.quasi[one.profile] == self.quasi[person];
                let at = people.iter().position(alike).unwrap_or_else(|| {
                    people.push(People { profile: person, number: 0 });
                    people.len() - 1
                });
                people[at].number += 1;
                of_person.push(at);
            }
            let (mut seats, mut kinds, mut of_row) =
                (Vec::<Seat>::new(), Vec::new(), vec![usize::MAX; self.class.len()]);
            for row in self.published() {
                let class = self.class[row].unwrap();
                let alike = |&(other, plain): &(usize, usize)| other == class && self.plain[plain] == self.plain[row];
                let at = kinds.iter().position(alike).unwrap_or_else(|| {
                    kinds.push((class, row));
                    let inside = |at: &usize| self.covers(class, people[*at].profile);
                    let occurs = |at: usize| {
                        (0..self.quasi.len())
                            .any(|other| of_person[other] == at && self.plain[other] == self.plain[row])
                    };
                    let candidates = (0..people.len()).filter(inside).map(|at| (at as u32, occurs(at))).collect();
                    seats.push(Seat { plain: row, rows: 0, candidates });
                    seats.len() - 1
                });
                seats[at].rows += 1;
                of_row[row] = at;
            }
            (people, of_person, seats, kinds, of_row)
        }
    }

    #[test]
    fn people_can_be_where_some_world_has_them_and_nowhere_else() {
        let mut rng = fastrand::Rng::with_seed(11);
        let (mut impossible, mut counted) = (0, 0);
        for _ in 0..6_000 {
            let small = Small::random(&mut rng);
            let forced = small.by_force();
            let (people, of_person, seated, _, of_row) = small.together();
            let places = possible_places(&small.view(), &people, &seated, MAX_STEPS);
            for row in small.published() {
                for (person, &among) in of_person.iter().enumerate() {
                    let seat = of_row[row];
                    let at = seated[seat].candidates.iter().position(|one| one.0 as usize == among);
                    let place = at.map_or(Place::Impossible, |at| places[seat][at]);
                    let truth = if forced.contains(&(row, person)) { Place::Possible } else { Place::Impossible };
                    assert_eq!(place, truth, "row {row}, person {person} of {small:?}");
                    counted += 1;
                    impossible += usize::from(at.is_some() && truth == Place::Impossible);
                }
            }
        }
        assert!(impossible > 2_000, "the tables give something to find: {impossible} of {counted}");
    }

    /// People whom fewer than k rows of the whole release fit, by trying all worlds, are found among the exposed.
    #[test]
    fn nobody_who_is_exposed_is_missed() {
        let mut rng = fastrand::Rng::with_seed(12);
        let (mut found, mut cut_short, mut k) = (0, 0, 2);
        for number in 0..4_000 {
            let small = Small::random(&mut rng);
            let forced = small.by_force();
            let rows_of = |person: usize| forced.iter().filter(|(_, other)| *other == person).count();
            let published = small.published();
            let exposed = published.iter().filter(|&&person| rows_of(person) < k).count() as u64;
            let (people, _, seated, kinds, _) = small.together();
            // With hardly any steps, what is not decided is counted instead.
            let max_steps = if number % 2 == 0 { MAX_STEPS } else { rng.u64(..40) };
            let places = possible_places(&small.view(), &people, &seated, max_steps);
            let (mut decided, mut undecided) = (0, 0);
            for class in 0..3 {
                let mine = (0..kinds.len()).filter(|&at| kinds[at].0 == class);
                let (of_class, places): (Vec<Seat>, Vec<Vec<Place>>) =
                    mine.map(|at| (seated[at].clone(), places[at].clone())).unzip();
                let counted = count_hiding_rows(&of_class, &places, k as u64);
                let small = of_class.iter().zip(&counted.crowds.smallest).filter(|(_, rows)| **rows < k as u64);
                decided += small.map(|(seat, _)| u64::from(seat.rows)).sum::<u64>();
                undecided += counted.undecided;
            }
            assert!(decided + undecided >= exposed, "{decided} and {undecided} of {exposed}: {small:?}");
            if number % 2 == 0 {
                assert_eq!(undecided, 0);
                found += exposed;
            }
            cut_short += undecided;
            k = 2 + number % 2;
        }
        assert!(found > 500 && cut_short > 500, "{found}, {cut_short}");
    }

    /// Three people of one x and two of another in a class of five: `x -> s` gives everybody's s away by number alone.
    #[test]
    fn numbers_alone_tell_whose_the_rows_are() {
        let small = Small {
            quasi: [0, 0, 0, 1, 1].map(|x| vec![x, 0]).to_vec(),
            plain: [7, 7, 7, 8, 8].map(|s| vec![s, 0]).to_vec(),
            class: vec![Some(0); 5],
            covered: vec![vec![BTreeSet::from([0, 1]), BTreeSet::from([0])]],
            dependencies: vec![Dependency { from: vec![Attribute::Quasi(0)], to: vec![Attribute::Plain(0)] }],
        };
        let (people, _, seated, ..) = small.together();
        let places = possible_places(&small.view(), &people, &seated, MAX_STEPS);
        assert_eq!(places, [[Place::Possible, Place::Impossible], [Place::Impossible, Place::Possible]]);
        assert_eq!(count_hiding_rows(&seated, &places, 5).crowds.smallest, [3, 2]);
        let unknown = possible_places(&small.view(), &people, &seated, 0);
        let counted = count_hiding_rows(&seated, &unknown, 5);
        assert_eq!((counted.crowds.smallest, counted.undecided), (vec![5, 5], 5), "what was not looked at is said");
    }

    #[test]
    fn circles_of_a_graph() {
        let found = strongly_connected(6, &[(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3), (5, 0)]);
        assert_eq!(found[0], found[1]);
        assert_eq!(found[1], found[2]);
        assert_eq!(found[3], found[4]);
        assert!(found[0] != found[3] && found[5] != found[0] && found[5] != found[3]);
    }
}
