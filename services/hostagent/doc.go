// Package hostagent is the program that runs beside the machines with cards: it
// tells the console what it sees and carries out what the console wants.
//
// It dials out and opens no port. One long poll brings the whole desired state;
// one worker for each VM and for each card to be cleaned compares it with what
// an inspection of the host shows and carries out the next step, until nothing
// is left to do. The agent keeps nothing of this: after a kill at any moment it
// inspects and goes on. On disk it has its key, its certificate and the newest
// epoch.
//
// What a step does is the business of a Driver. The agent decides which step is
// due, checks before a bind that the card is the right one and free, bounds
// each step in time, retries, and gives up visibly.
package hostagent
