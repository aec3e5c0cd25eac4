// Package gpus is the pages about GPUs: the list, the form that allocates one,
// and the page of one.
package gpus
