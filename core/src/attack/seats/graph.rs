//! The search for worlds: a flow from seats to people that uses one answer of every question.
//!
//! The steps are those of [`seats`](super): components, filling along augmenting paths, and trying what is left. Every change
//! stands in a log, so that a place that was tried can be taken back.

use std::collections::HashMap;

use super::circles::strongly_connected;
use super::{People, Place, Seat};
use crate::attack::chase::Numbered;

/// Most steps that may be spent on one place.
const MAX_TRIAL: u64 = 1 << 20;

/// Components of up to this many places are searched for cycles again after every world that was found.
const SMALL: usize = 1 << 10;

/// A place: a seat and people who may be there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) seat: u32,
    person: u32,
    /// Which candidate of the seat.
    pub(super) at: u32,
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
pub(super) struct Graph {
    pub(super) edges: Vec<Edge>,
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

    pub(super) places: Vec<Place>,
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
    pub(super) fn new(dependencies: &[Numbered], people: &[People], seats: &[Seat]) -> Self {
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
    pub(super) fn component_places(&self) -> Vec<Vec<u32>> {
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
    pub(super) fn decide_component(&mut self, component: &[u32], max_steps: u64) {
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
