// Package plan computes what both databases of store write: it converts between
// rows and messages, and plans the changes of a submitted command, a commit or an
// import, given the current rows. It also delivers wakes. It has no SQL. Both
// databases decide here, so that they answer alike.
package plan
