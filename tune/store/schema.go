package store

// applicationID marks the file as kgen's: the bytes of "kgen".
const applicationID = 0x6b67656e

// migrations bring a store from each version to the next: the step at index i
// makes version i+1. Steps that have been released never change.
var migrations = []string{
	`CREATE TABLE runs (
		id         INTEGER PRIMARY KEY,
		started    TEXT    NOT NULL,             -- RFC 3339, UTC
		command    TEXT    NOT NULL,
		family     TEXT    NOT NULL,
		problem    TEXT    NOT NULL,             -- JSON, keys sorted
		gpu        TEXT    NOT NULL,
		driver     TEXT    NOT NULL,
		types      TEXT    NOT NULL,
		policy     TEXT    NOT NULL,             -- how times come about
		kgen       TEXT    NOT NULL,
		compiler   TEXT    NOT NULL,
		cost_model TEXT    NOT NULL,
		budget     INTEGER NOT NULL,
		seed       INTEGER NOT NULL
	) STRICT;
	CREATE INDEX runs_problem ON runs (family, gpu, problem);
	CREATE TABLE evaluations (
		id           INTEGER PRIMARY KEY,
		run          INTEGER NOT NULL REFERENCES runs (id),
		at           INTEGER NOT NULL,           -- milliseconds since 1970
		key          BLOB    NOT NULL,
		program      TEXT    NOT NULL,
		config       TEXT    NOT NULL,
		outcome      TEXT    NOT NULL CHECK (outcome IN
			('correct', 'compile', 'runtime', 'correctness', 'timeout', 'constraints', 'resources')),
		error        TEXT    NOT NULL,
		registers    INTEGER NOT NULL,
		shared_bytes INTEGER NOT NULL,
		spill_bytes  INTEGER NOT NULL,
		ctas_per_sm  INTEGER NOT NULL,
		time_us      REAL,                       -- null unless correct
		provenance   TEXT,
		limits       TEXT,                       -- JSON: unit to microseconds
		cubin        TEXT    NOT NULL,
		verified     INTEGER NOT NULL
	) STRICT;
	CREATE INDEX evaluations_key ON evaluations (key, id);
	CREATE INDEX evaluations_run ON evaluations (run);`,

	// What was only predicted is called so, and the time's terms are kept.
	`ALTER TABLE evaluations RENAME TO evaluations_1;
	DROP INDEX evaluations_key;
	DROP INDEX evaluations_run;
	CREATE TABLE evaluations (
		id           INTEGER PRIMARY KEY,
		run          INTEGER NOT NULL REFERENCES runs (id),
		at           INTEGER NOT NULL,           -- milliseconds since 1970
		key          BLOB    NOT NULL,
		program      TEXT    NOT NULL,
		config       TEXT    NOT NULL,
		outcome      TEXT    NOT NULL CHECK (outcome IN
			('correct', 'predicted', 'compile', 'runtime', 'correctness', 'timeout', 'constraints', 'resources')),
		error        TEXT    NOT NULL,
		registers    INTEGER NOT NULL,           -- 0: not known, and so are the spills
		shared_bytes INTEGER NOT NULL,
		spill_bytes  INTEGER NOT NULL,
		ctas_per_sm  INTEGER NOT NULL,
		time_us      REAL,                       -- null unless correct or predicted
		provenance   TEXT,
		limits       TEXT,                       -- JSON: unit to microseconds
		cubin        TEXT    NOT NULL,
		verified     INTEGER NOT NULL,
		terms        TEXT                        -- JSON: name to microseconds, which add up to time_us
	) STRICT;
	INSERT INTO evaluations SELECT id, run, at, key, program, config,
		CASE WHEN outcome = 'correct' AND verified = 0 AND provenance = 'predicted' THEN 'predicted' ELSE outcome END,
		error, registers, shared_bytes, spill_bytes, ctas_per_sm, time_us, provenance, limits, cubin, verified, NULL FROM evaluations_1;
	DROP TABLE evaluations_1;
	CREATE INDEX evaluations_key ON evaluations (key, id);
	CREATE INDEX evaluations_run ON evaluations (run);`,

	// What the code is made of is kept.
	`ALTER TABLE evaluations ADD COLUMN instructions TEXT; -- JSON: SASS mnemonic to count`,

	// So are single times, what trying took, and whether the device was slow meanwhile.
	`ALTER TABLE evaluations ADD COLUMN samples TEXT; -- JSON: list of microseconds, in the order of the runs
	ALTER TABLE evaluations ADD COLUMN seconds TEXT; -- JSON: phase to seconds
	ALTER TABLE evaluations ADD COLUMN throttled INTEGER NOT NULL DEFAULT 0;`,
}
