\set ON_ERROR_STOP off
\echo '## changes.rs 0'
PREPARE s0 AS SELECT i.id, i.session_id, s.key, i.message, i.edited, i.edited_at, i.called_off,
            i.attached IS NOT NULL AS had_attached, t.id IS NOT NULL AS begun, t.answered_at IS NOT NULL AS answered
     FROM inbox i JOIN session s ON s.id = i.session_id LEFT JOIN turn t ON t.id = i.id
     WHERE i.channel = $1 AND i.ts = $2 AND i.ts <> '' ORDER BY i.id DESC;
\echo '## changes.rs 1'
PREPARE s1 AS SELECT o.turn_id, i.session_id, s.key
     FROM outbox o JOIN inbox i ON i.id = o.turn_id JOIN session s ON s.id = i.session_id
     WHERE o.sent_id = $1 AND s.channel = $2
       AND coalesce(CASE WHEN json_valid(o.how) THEN json_extract(o.how, '$.purpose.for') END, 'reply') IN ('reply', 'passed-on');
\echo '## changes.rs 2'
PREPARE s2 AS UPDATE inbox SET message = $2, edited_at = $3 WHERE id = $1;
\echo '## changes.rs 3'
PREPARE s3 AS UPDATE inbox SET edited = $2, edited_at = $3 WHERE id = $1;
\echo '## changes.rs 4'
PREPARE s4 AS UPDATE inbox SET called_off = $2, parked_at = NULL, parked_why = NULL, parked_told = 0
     WHERE id = $1;
\echo '## changes.rs 5'
PREPARE s5 AS UPDATE inbox SET called_off = 'stopped'
     WHERE id = $1 AND message IS NOT NULL AND parked_at IS NULL AND called_off IS NULL
       AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.id = $1 AND t.answered_at IS NOT NULL)
     RETURNING session_id, EXISTS (SELECT 1 FROM turn t WHERE t.id = $1) AS begun;
\echo '## changes.rs 6'
PREPARE s6 AS UPDATE session SET revision = revision + 1 WHERE id = $1;
\echo '## changes.rs 7'
PREPARE s7 AS SELECT revision FROM session WHERE id = $1;
\echo '## changes.rs 8'
PREPARE s8 AS INSERT INTO early_change (channel, ts, edited_at, text, at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (channel, ts) DO UPDATE SET edited_at = excluded.edited_at, text = excluded.text, at = excluded.at
     WHERE early_change.edited_at <= excluded.edited_at
            OR (early_change.edited_at IS NOT NULL AND excluded.edited_at IS NULL);
\echo '## changes.rs 9'
PREPARE s9 AS SELECT edited_at, text FROM early_change WHERE channel = $1 AND ts = $2;
\echo '## changes.rs 10'
PREPARE s10 AS DELETE FROM early_change WHERE channel = $1 AND ts = $2;
\echo '## changes.rs 11'
PREPARE s11 AS DELETE FROM early_change WHERE at <= $1;
\echo '## changes.rs 12'
PREPARE s12 AS SELECT i.id, i.user FROM inbox i JOIN session s ON s.id = i.session_id
     LEFT JOIN turn t ON t.id = i.id
     WHERE s.key = $1 AND i.message IS NOT NULL AND i.parked_at IS NULL AND i.called_off IS NULL AND t.answered_at IS NULL
     ORDER BY i.ts, i.id;
\echo '## changes.rs 13'
PREPARE s13 AS SELECT i.id, i.user, s.key FROM inbox i JOIN session s ON s.id = i.session_id
     LEFT JOIN turn t ON t.id = i.id
     WHERE i.message IS NOT NULL AND i.parked_at IS NULL AND i.called_off IS NULL AND t.answered_at IS NULL
       AND i.channel = $1 AND (i.ts = $2 OR t.placeholder = $2);
\echo '## changes.rs 14'
PREPARE s14 AS SELECT channel, ts FROM inbox WHERE id = $1;
\echo '## changes.rs 15'
PREPARE s15 AS SELECT i.user, i.channel, i.ts, i.edited, i.called_off, i.attached,
            t.asked_by IS NOT NULL OR t.answered_with IS NOT NULL AS is_question, t.delivered_at IS NOT NULL AS is_over
     FROM turn t JOIN inbox i ON i.id = t.id WHERE t.id = $1;
\echo '## changes.rs 16'
PREPARE s16 AS SELECT t.id, t.piece_start, t.piece_bytes, i.user FROM turn t JOIN inbox i ON i.id = t.id
     WHERE t.answered_with = $1 AND t.piece_start IS NOT NULL ORDER BY t.piece_start;
\echo '## changes.rs 17'
PREPARE s17 AS SELECT 1 FROM turn t JOIN inbox i ON i.id = t.id
     WHERE t.answered_with = $1 AND i.user = $2;
\echo '## changes.rs 18'
PREPARE s18 AS UPDATE inbox SET again_of = $2 WHERE id = $1;
\echo '## changes.rs 19'
PREPARE s19 AS SELECT again_of FROM inbox WHERE id = $1;
\echo '## changes.rs 20'
PREPARE s20 AS DELETE FROM live WHERE session_id = $1 AND message_id IN
     (SELECT m.id FROM message m WHERE m.turn_id = $2
      UNION ALL SELECT m.id FROM turn t JOIN message m ON m.turn_id = t.id WHERE t.answered_with = $2);
\echo '## intake.rs 21'
PREPARE s21 AS SELECT front, key FROM seen WHERE at <= $1 ORDER BY at LIMIT $2;
\echo '## intake.rs 22'
PREPARE s22 AS DELETE FROM seen WHERE front = $1 AND key = $2;
\echo '## intake.rs 23'
PREPARE s23 AS SELECT 1 FROM seen WHERE front = $1 AND key = $2 AND at > $3;
\echo '## intake.rs 24'
PREPARE s24 AS INSERT INTO seen (front, key, at) VALUES ($1, $2, $3) ON CONFLICT (front, key) DO NOTHING;
\echo '## intake.rs 25'
PREPARE s25 AS UPDATE seen SET at = $3 WHERE front = $1 AND key = $2;
\echo '## intake.rs 26'
PREPARE s26 AS INSERT INTO session (key, created_at, active_at, channel) VALUES ($1, $2, $2, $3);
\echo '## intake.rs 27'
PREPARE s27 AS UPDATE session SET active_at = $2, channel = $3 WHERE id = $1;
\echo '## intake.rs 28'
PREPARE s28 AS INSERT INTO inbox (session_id, event_id, received_at, ts, message, channel, "user")
     VALUES ($1, $2, $3, $4, $5, $6, $7);
\echo '## intake.rs 29'
PREPARE s29 AS SELECT i.id, s.key, i.ts FROM inbox i JOIN session s ON s.id = i.session_id
     WHERE i.message IS NOT NULL AND i.parked_at IS NULL
     ORDER BY min(i.id) OVER (PARTITION BY i.session_id), i.ts, i.id;
\echo '## intake.rs 30'
PREPARE s30 AS SELECT i.id, i.ts FROM inbox i JOIN session s ON s.id = i.session_id
     WHERE s.key = $1 AND i.message IS NOT NULL AND i.parked_at IS NULL
     ORDER BY i.ts, i.id;
\echo '## dump.rs 31'
PREPARE s31 AS SELECT created_at, active_at, turns, dropped_turns, marker, "verbose" FROM session WHERE id = $1;
\echo '## dump.rs 32'
PREPARE s32 AS SELECT id, role, origin, blocks, NULL, tokens, chars, created_at FROM message
     WHERE session_id = $1 ORDER BY id;
\echo '## dump.rs 33'
PREPARE s33 AS SELECT message_id, replacement, tokens FROM live WHERE session_id = $1 ORDER BY position;
\echo '## sessions.rs 34'
PREPARE s34 AS SELECT s.key, s.turns, s.dropped_turns, s.marker, s.active_at,
                    (SELECT count(*) FROM live l WHERE l.session_id = s.id) AS live_messages,
                    (SELECT CAST(coalesce(sum(tokens), 0) AS BIGINT) FROM live l WHERE l.session_id = s.id) AS live_tokens,
                    (SELECT count(*) FROM message m WHERE m.session_id = s.id) AS messages
             FROM session s ;
\echo '## sessions.rs 35'
PREPARE s35 AS SELECT id FROM session WHERE key = $1;
\echo '## sessions.rs 36'
PREPARE s36 AS SELECT ;
\echo '## sessions.rs 37'
PREPARE s37 AS SELECT ;
\echo '## following.rs 38'
PREPARE s38 AS UPDATE session SET followed = $2, followed_from = $3,
            followed_until = CASE WHEN followed_until > $3 THEN followed_until END
     WHERE key = $1 AND (followed_from IS NULL OR followed_from < $3);
\echo '## following.rs 39'
PREPARE s39 AS UPDATE session SET followed_until = $3
     WHERE key = $1 AND followed <> $2 AND followed_from < $3 AND (followed_until IS NULL OR followed_until > $3);
\echo '## following.rs 40'
PREPARE s40 AS SELECT followed = $2 AS is_theirs FROM session
     WHERE key = $1 AND followed_from < $3 AND (followed_until IS NULL OR followed_until > $3);
\echo '## following.rs 41'
PREPARE s41 AS UPDATE session SET followed_until = followed_from
     WHERE key = $1 AND followed = $2 AND followed_from = $3;
\echo '## tools.rs 42'
PREPARE s42 AS INSERT INTO model_tools (provider, model, takes) VALUES ($1, $2, $3)
     ON CONFLICT (provider, model) DO UPDATE SET takes = excluded.takes;
\echo '## tools.rs 43'
PREPARE s43 AS SELECT takes FROM model_tools WHERE provider = $1 AND model = $2;
\echo '## cases.rs 44'
PREPARE s44 AS SELECT c.id, c.front, c.channel, c.title, c.opened_by, c.opened_at, c.closed_by, c.closed_at,
                    (SELECT count(*) FROM case_message m WHERE m.case_id = c.id) AS messages
             FROM case_file c ;
\echo '## cases.rs 45'
PREPARE s45 AS SELECT id, opened_on FROM case_file WHERE front = $1 AND channel = $2 AND closed_at IS NULL;
\echo '## cases.rs 46'
PREPARE s46 AS SELECT id FROM case_file WHERE front = $1 AND channel = $2 AND closed_on = $3;
\echo '## cases.rs 47'
PREPARE s47 AS INSERT INTO case_file (front, channel, title, opened_by, opened_at, opened_on)
     VALUES ($1, $2, $3, $4, $5, $6);
\echo '## cases.rs 48'
PREPARE s48 AS UPDATE case_file SET closed_by = $2, closed_at = $3, closed_on = $4 WHERE id = $1;
\echo '## cases.rs 49'
PREPARE s49 AS SELECT channel FROM case_file WHERE closed_at IS NULL AND front = $1 ORDER BY channel;
\echo '## cases.rs 50'
PREPARE s50 AS SELECT kind, text, at, message_id FROM case_note WHERE case_id = $1 ORDER BY id;
\echo '## cases.rs 51'
PREPARE s51 AS INSERT INTO case_note (case_id, kind, spelling, text, at, message_id)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (case_id, kind, spelling) DO NOTHING;
\echo '## cases.rs 52'
PREPARE s52 AS INSERT INTO case_message (message_id, case_id, "user", at) VALUES ($1, $2, $3, $4) ON CONFLICT (message_id) DO NOTHING;
\echo '## cases.rs 53'
PREPARE s53 AS SELECT m.id, m.role, m.origin, m.blocks, NULL, m.tokens, m.chars, s.key, c.user, c.at
     FROM case_message c JOIN message m ON m.id = c.message_id JOIN session s ON s.id = m.session_id
     WHERE c.case_id = $1 ORDER BY c.at, c.message_id;
\echo '## cases.rs 54'
PREPARE s54 AS SELECT id FROM case_file WHERE front = $1 AND channel = $2 AND title = $3 AND opened_at = $4;
\echo '## parking.rs 55'
PREPARE s55 AS UPDATE inbox SET parked_at = $2, parked_why = $3, parked_told = 0
     WHERE id = $1 AND message IS NOT NULL AND parked_at IS NULL
     RETURNING session_id;
\echo '## parking.rs 56'
PREPARE s56 AS SELECT i.id, s.key, i.ts, i.parked_at, i.parked_why, i.parked_told, i.message,
            CASE WHEN EXISTS (SELECT 1 FROM outbox o WHERE o.turn_id = i.id AND o.part = 0 AND o.sent_at IS NOT NULL)
                 THEN NULL ELSE t.placeholder END,
            EXISTS (SELECT 1 FROM outbox o WHERE o.turn_id = i.id)
                AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.turn_id = i.id AND o.sent_at IS NULL
                    AND coalesce(CASE WHEN json_valid(o.how) THEN json_extract(o.how, '$.purpose.for') END, 'reply')
                        NOT IN ('withdraw', 'mark', 'tracked', 'notice')),
            CASE WHEN json_valid(t.report) THEN json_extract(t.report, '$.event_ids') END
     FROM inbox i JOIN session s ON s.id = i.session_id LEFT JOIN turn t ON t.id = i.id
     WHERE i.parked_at IS NOT NULL AND i.message IS NOT NULL AND (CAST($1 AS BIGINT) IS NULL OR i.id = $1)
     ORDER BY i.id;
\echo '## parking.rs 57'
PREPARE s57 AS UPDATE inbox SET parked_told = 1 WHERE id = $1 AND parked_at IS NOT NULL;
\echo '## parking.rs 58'
PREPARE s58 AS UPDATE inbox SET parked_at = NULL, parked_why = NULL, parked_told = 0 WHERE id = $1 AND parked_at IS NOT NULL;
\echo '## database.rs 59'
PREPARE s59 AS SELECT to_regclass('pmk_schema') IS NOT NULL;
\echo '## database.rs 60'
PREPARE s60 AS SELECT version FROM pmk_schema;
\echo '## database.rs 61'
PREPARE s61 AS DELETE FROM pmk_schema; INSERT INTO pmk_schema (version) VALUES;
\echo '## database.rs 62'
PREPARE s62 AS SELECT current_setting('server_encoding');
\echo '## database.rs 63'
PREPARE s63 AS SELECT CAST(current_schema() AS TEXT);
\echo '## database.rs 64'
PREPARE s64 AS SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v', 'm');
\echo '## database.rs 65'
PREPARE s65 AS SELECT 1 FROM host WHERE until > pmk_now() LIMIT 1;
\echo '## uses.rs 66'
PREPARE s66 AS INSERT INTO atom_shown (atom, turn_id, session_id, at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (atom, turn_id) DO NOTHING;
\echo '## uses.rs 67'
PREPARE s67 AS INSERT INTO atom_doubt (atom, source, at)
     SELECT atom, $3, $4 FROM atom_shown WHERE session_id = $1 AND at > $2
     ON CONFLICT (atom, source) DO NOTHING;
\echo '## uses.rs 68'
PREPARE s68 AS SELECT atom, count(*), max(at) FROM atom_shown GROUP BY atom;
\echo '## uses.rs 69'
PREPARE s69 AS SELECT atom, count(*) FROM (
         SELECT s.atom FROM atom_shown s JOIN vote v ON v.turn_id = s.turn_id WHERE v.likes = 0
         UNION ALL SELECT atom FROM atom_doubt
     ) AS doubts GROUP BY atom;
\echo '## events.rs 70'
PREPARE s70 AS INSERT INTO event (at, turn_id, file, line) VALUES ($1, $2, $3, $4);
\echo '## events.rs 71'
PREPARE s71 AS SELECT id, file, line FROM event WHERE id > $1 ORDER BY id LIMIT $2;
\echo '## events.rs 72'
PREPARE s72 AS SELECT count(*) FROM event WHERE id > $1;
\echo '## events.rs 73'
PREPARE s73 AS DELETE FROM event WHERE id <= $1;
\echo '## events.rs 74'
PREPARE s74 AS SELECT file, length FROM exported WHERE id = 1;
\echo '## events.rs 75'
PREPARE s75 AS INSERT INTO exported (id, file, length) VALUES (1, $1, $2)
     ON CONFLICT (id) DO UPDATE SET file = excluded.file, length = excluded.length;
\echo '## events.rs 76'
PREPARE s76 AS INSERT INTO event (at, turn_id, file, line, home) VALUES ($1, $2, $3, $4, $5);
\echo '## events.rs 77'
PREPARE s77 AS SELECT id, file, line FROM event WHERE id > $1 AND home = $3 ORDER BY id LIMIT $2;
\echo '## events.rs 78'
PREPARE s78 AS SELECT count(*) FROM event WHERE id > $1 AND home = $2;
\echo '## events.rs 79'
PREPARE s79 AS DELETE FROM event WHERE id <= $1 AND home = $2;
\echo '## events.rs 80'
PREPARE s80 AS SELECT file, length FROM exported WHERE home = $1;
\echo '## events.rs 81'
PREPARE s81 AS INSERT INTO exported (home, file, length) VALUES ($3, $1, $2)
     ON CONFLICT (home) DO UPDATE SET file = excluded.file, length = excluded.length;
\echo '## restore.rs 82'
PREPARE s82 AS SELECT 1 FROM message WHERE session_id = $1;
\echo '## restore.rs 83'
PREPARE s83 AS SELECT 1 FROM message WHERE id = $1;
\echo '## restore.rs 84'
PREPARE s84 AS INSERT INTO session (key, created_at, active_at) VALUES ($1, $2, $3);
\echo '## restore.rs 85'
PREPARE s85 AS UPDATE session
     SET turns = turns + $2, dropped_turns = $3, marker = $4, "verbose" = $7, 
            created_at = CASE WHEN created_at < $5 THEN created_at ELSE $5 END,
            active_at = CASE WHEN active_at > $6 THEN active_at ELSE $6 END
     WHERE id = $1;
\echo '## restore.rs 86'
PREPARE s86 AS INSERT INTO message (id, session_id, role, origin, blocks, tokens, chars, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8);
\echo '## window.rs 87'
PREPARE s87 AS SELECT ;
\echo '## window.rs 88'
PREPARE s88 AS SELECT coalesce(max(position) + 1, 0) FROM live WHERE session_id = $1;
\echo '## window.rs 89'
PREPARE s89 AS INSERT INTO message (session_id, turn_id, role, origin, blocks, tokens, chars, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8);
\echo '## window.rs 90'
PREPARE s90 AS INSERT INTO live (session_id, position, message_id, replacement, tokens, chars) VALUES ($1, $2, $3, $4, $5, $6);
\echo '## window.rs 91'
PREPARE s91 AS DELETE FROM live WHERE session_id = $1 AND position BETWEEN $2 AND $3;
\echo '## window.rs 92'
PREPARE s92 AS UPDATE live SET replacement = $3, tokens = $4, chars = $5 WHERE session_id = $1 AND position = $2;
\echo '## window.rs 93'
PREPARE s93 AS UPDATE session SET dropped_turns = $2, marker = $3 WHERE id = $1;
\echo '## escalations.rs 94'
PREPARE s94 AS SELECT marker FROM escalation
     WHERE front = $1 AND channel = $2 AND thread_ts = $3 AND closed_at IS NULL
       AND (claimed_by IS NULL OR claimed_by = $4);
\echo '## escalations.rs 95'
PREPARE s95 AS SELECT 1 FROM escalation WHERE front = $1 AND channel = $2 AND thread_ts = $3 AND closed_at IS NULL;
\echo '## escalations.rs 96'
PREPARE s96 AS SELECT marker FROM escalation
     WHERE front = $1 AND channel = $2 AND closed_at IS NULL AND claimed_by IS NULL ORDER BY thread_ts DESC;
\echo '## escalations.rs 97'
PREPARE s97 AS SELECT e.marker FROM asked_apart a
     JOIN outbox o ON o.turn_id = a.turn_id AND o.part = a.part
     JOIN escalation e ON e.front = a.front AND e.channel = a.channel AND e.thread_ts = a.thread_ts
     WHERE a.contact = $1 AND a.front = $2 AND o.sent_id = $3 ORDER BY a.turn_id DESC LIMIT 1;
\echo '## escalations.rs 98'
PREPARE s98 AS SELECT e.marker FROM asked_apart a
     JOIN outbox o ON o.turn_id = a.turn_id AND o.part = a.part
     JOIN escalation e ON e.front = a.front AND e.channel = a.channel AND e.thread_ts = a.thread_ts
     WHERE a.contact = $1 AND a.front = $2 AND o.sent_at IS NULL ORDER BY a.turn_id DESC LIMIT 1;
\echo '## escalations.rs 99'
PREPARE s99 AS SELECT e.marker FROM asked_apart a
     JOIN escalation e ON e.front = a.front AND e.channel = a.channel AND e.thread_ts = a.thread_ts
     WHERE a.contact = $1 AND a.front = $2 AND e.closed_at IS NULL ORDER BY a.turn_id DESC LIMIT 1;
\echo '## escalations.rs 100'
PREPARE s100 AS SELECT a.contact, o.sent_id FROM asked_apart a
     JOIN outbox o ON o.turn_id = a.turn_id AND o.part = a.part
     WHERE a.front = $1 AND a.channel = $2 AND a.thread_ts = $3
     ORDER BY a.contact, a.turn_id, a.part;
\echo '## escalations.rs 101'
PREPARE s101 AS UPDATE escalation SET claimed_by = $4
     WHERE front = $1 AND channel = $2 AND thread_ts = $3 AND closed_at IS NULL
       AND (claimed_by IS NULL OR claimed_by = $4);
\echo '## escalations.rs 102'
PREPARE s102 AS UPDATE escalation SET claimed_by = NULL WHERE claimed_by = $1
       AND NOT EXISTS (SELECT 1 FROM turn WHERE id = $1 AND answered_at IS NOT NULL)
       AND NOT EXISTS (SELECT 1 FROM inbox WHERE id = $1 AND substr(event_id, 1, 8) = ':answer:');
\echo '## escalations.rs 103'
PREPARE s103 AS UPDATE escalation SET claimed_by = $2 WHERE claimed_by IN ($1, $2) RETURNING marker;
\echo '## escalations.rs 104'
PREPARE s104 AS SELECT 1 FROM escalation WHERE claimed_by = $1;
\echo '## escalations.rs 105'
PREPARE s105 AS UPDATE escalation SET closed_at = $2, claimed_by = NULL WHERE claimed_by = $1;
\echo '## escalations.rs 106'
PREPARE s106 AS UPDATE escalation SET closed_at = $4
     WHERE front = $1 AND channel = $2 AND thread_ts = $3 AND closed_at IS NULL AND claimed_by IS NULL;
\echo '## escalations.rs 107'
PREPARE s107 AS DELETE FROM asked_apart WHERE (front, channel, thread_ts) IN
     (SELECT front, channel, thread_ts FROM escalation WHERE closed_at <= $1);
\echo '## escalations.rs 108'
PREPARE s108 AS DELETE FROM escalation WHERE closed_at <= $1;
\echo '## escalations.rs 109'
PREPARE s109 AS INSERT INTO escalation (front, channel, thread_ts, marker) VALUES ($1, $2, $3, $4)
     ON CONFLICT (front, channel, thread_ts) DO UPDATE SET marker = excluded.marker, claimed_by = NULL, closed_at = NULL;
\echo '## escalations.rs 110'
PREPARE s110 AS INSERT INTO asked_apart (turn_id, part, contact, front, channel, thread_ts)
     VALUES ($1, $2, $3, $4, $5, $6);
\echo '## escalations.rs 111'
PREPARE s111 AS UPDATE escalation SET marker = $4 WHERE front = $1 AND channel = $2 AND thread_ts = $3 AND closed_at IS NULL;
\echo '## escalations.rs 112'
PREPARE s112 AS UPDATE turn SET reading = $2 WHERE id = $1 AND answered_at IS NULL;
\echo '## escalations.rs 113'
PREPARE s113 AS INSERT INTO escalation (front, channel, thread_ts, marker) VALUES ($1, $2, $3, $4)
     ON CONFLICT (front, channel, thread_ts) DO NOTHING;
\echo '## escalations.rs 114'
PREPARE s114 AS SELECT marker FROM escalation WHERE closed_at IS NULL ORDER BY front, channel, thread_ts;
\echo '## escalations.rs 115'
PREPARE s115 AS UPDATE escalation SET closed_at = $3
     WHERE channel = $1 AND thread_ts = $2 AND closed_at IS NULL AND claimed_by IS NULL RETURNING marker;
\echo '## images.rs 116'
PREPARE s116 AS INSERT INTO image (inbox_id, sha256, bytes) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING;
\echo '## images.rs 117'
PREPARE s117 AS SELECT bytes FROM image WHERE sha256 = $1 LIMIT 1;
\echo '## images.rs 118'
PREPARE s118 AS DELETE FROM image WHERE inbox_id = $1;
\echo '## asked.rs 119'
PREPARE s119 AS DELETE FROM asked WHERE at <= $1;
\echo '## asked.rs 120'
PREPARE s120 AS SELECT count(*) FROM asked WHERE kind = $1 AND front = $2 AND "user" = $3 AND at > $4;
\echo '## asked.rs 121'
PREPARE s121 AS SELECT count(*) FROM asked WHERE kind = $1 AND session_id = $2 AND at > $3;
\echo '## asked.rs 122'
PREPARE s122 AS INSERT INTO asked (kind, front, "user", session_id, at) VALUES ($1, $2, $3, $4, $5);
\echo '## asked.rs 123'
PREPARE s123 AS SELECT m.id FROM live l JOIN message m ON m.id = l.message_id JOIN turn t ON t.id = m.turn_id
     WHERE l.session_id = $1 AND t.asked_by = $2 AND m.origin = 'user';
\echo '## receipts.rs 124'
PREPARE s124 AS SELECT body FROM text WHERE sha256 = $1;
\echo '## receipts.rs 125'
PREPARE s125 AS SELECT turn_id, body FROM receipt
     WHERE session_id = (SELECT session_id FROM turn WHERE id = $1) AND turn_id = $1 ORDER BY call;
\echo '## receipts.rs 126'
PREPARE s126 AS SELECT turn_id, body FROM receipt WHERE session_id = $1 ORDER BY turn_id, call;
\echo '## receipt.rs 127'
PREPARE s127 AS INSERT INTO text (sha256, body) VALUES ($1, $2) ON CONFLICT (sha256) DO NOTHING;
\echo '## receipt.rs 128'
PREPARE s128 AS INSERT INTO receipt (session_id, turn_id, call, at, body) VALUES ($1, $2, $3, $4, $5);
\echo '## receipt.rs 129'
PREPARE s129 AS SELECT body FROM receipt WHERE session_id = $1
     AND (body LIKE '%[' || $2 || ',"%' OR body LIKE '%"replaced":[[%' OR body LIKE '%"recall":"%');
\echo '## receipt.rs 130'
PREPARE s130 AS SELECT json_extract(body, '$.background') FROM receipt WHERE session_id = $1 AND body LIKE '%"background":"%';
\echo '## receipt.rs 131'
PREPARE s131 AS DELETE FROM text WHERE sha256 = $1;
\echo '## presence.rs 132'
PREPARE s132 AS INSERT INTO outage (id, since, until, reason) VALUES (1, $1, $2, $3)
     ON CONFLICT (id) DO UPDATE SET since = CASE WHEN outage.since < excluded.since THEN outage.since
            WHEN outage.since IS NOT NULL THEN excluded.since END, until = excluded.until, reason = excluded.reason;
\echo '## presence.rs 133'
PREPARE s133 AS INSERT INTO outage (id, since, until, reason) VALUES (1, $1, $2, $3)
     ON CONFLICT (id) DO NOTHING;
\echo '## presence.rs 134'
PREPARE s134 AS SELECT since, until, reason FROM outage WHERE id = 1;
\echo '## presence.rs 135'
PREPARE s135 AS DELETE FROM outage WHERE id = 1;
\echo '## presence.rs 136'
PREPARE s136 AS UPDATE session SET read_from = NULL WHERE read_from IS NOT NULL AND active_at < $1;
\echo '## presence.rs 137'
PREPARE s137 AS UPDATE session SET read_from = coalesce((SELECT max(i.ts) FROM inbox i
            WHERE i.session_id = session.id AND i.ts > $1 AND (CAST($2 AS TEXT) IS NULL OR i.ts <= $2)), $1)
     WHERE read_from IS NULL AND id IN (SELECT id FROM session
            WHERE active_at >= $3 AND channel IS NOT NULL AND key LIKE 'slack:%' ORDER BY active_at DESC LIMIT $4);
\echo '## presence.rs 138'
PREPARE s138 AS SELECT key, channel, read_from, active_at FROM session
     WHERE read_from IS NOT NULL ORDER BY active_at DESC;
\echo '## presence.rs 139'
PREPARE s139 AS UPDATE session SET read_from = NULL WHERE key = $1;
\echo '## presence.rs 140'
PREPARE s140 AS SELECT 1 FROM session s JOIN inbox i ON i.session_id = s.id
     WHERE s.key = $1 AND i.ts = $2;
\echo '## presence.rs 141'
PREPARE s141 AS SELECT 1 FROM session WHERE key = $1 AND active_at >= $2;
\echo '## presence.rs 142'
PREPARE s142 AS SELECT key, channel FROM session WHERE active_at >= $1 ORDER BY active_at DESC;
\echo '## presence.rs 143'
PREPARE s143 AS SELECT message FROM told WHERE listener = $1 AND at > $2;
\echo '## presence.rs 144'
PREPARE s144 AS INSERT INTO told (listener, at) VALUES ($1, $2)
     ON CONFLICT (listener) DO UPDATE SET at = excluded.at, message = NULL;
\echo '## presence.rs 145'
PREPARE s145 AS UPDATE told SET message = $2 WHERE listener = $1;
\echo '## presence.rs 146'
PREPARE s146 AS DELETE FROM told WHERE listener = $1;
\echo '## calibrations.rs 147'
PREPARE s147 AS INSERT INTO calibration (provider, model, weight, x, y, xx, xy)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (provider, model) DO UPDATE SET weight = excluded.weight, x = excluded.x, y = excluded.y,
            xx = excluded.xx, xy = excluded.xy;
\echo '## calibrations.rs 148'
PREPARE s148 AS DELETE FROM bound WHERE provider = $1 AND model = $2;
\echo '## calibrations.rs 149'
PREPARE s149 AS INSERT INTO bound (provider, model, kind, size, tokens, source, learnt_at, until, times)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9);
\echo '## calibrations.rs 150'
PREPARE s150 AS SELECT weight, x, y, xx, xy FROM calibration WHERE provider = $1 AND model = $2;
\echo '## calibrations.rs 151'
PREPARE s151 AS SELECT kind, size, tokens, source, learnt_at, until, times FROM bound
     WHERE provider = $1 AND model = $2;
\echo '## calibrations.rs 152'
PREPARE s152 AS SELECT provider, model FROM calibration UNION SELECT provider, model FROM bound ORDER BY 1, 2;
\echo '## calibrations.rs 153'
PREPARE s153 AS DELETE FROM bound;
\echo '## calibrations.rs 154'
PREPARE s154 AS DELETE FROM model_tools;
\echo '## calibrations.rs 155'
PREPARE s155 AS DELETE FROM calibration;
\echo '## reset.rs 156'
PREPARE s156 AS DELETE FROM live WHERE session_id = $1;
\echo '## reset.rs 157'
PREPARE s157 AS UPDATE session SET dropped_turns = 0, marker = NULL WHERE id = $1;
\echo '## presses.rs 158'
PREPARE s158 AS INSERT INTO press (id, "user", channel, thread_ts, ts, choice) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (id) DO NOTHING;
\echo '## presses.rs 159'
PREPARE s159 AS SELECT number, id, "user", channel, thread_ts, ts, choice, shows, atom FROM press WHERE number > $1 ORDER BY number;
\echo '## presses.rs 160'
PREPARE s160 AS UPDATE press SET shows = $2, atom = $3 WHERE number = $1;
\echo '## presses.rs 161'
PREPARE s161 AS DELETE FROM press WHERE id = $1;
\echo '## presses.rs 162'
PREPARE s162 AS INSERT INTO press (id, "user", channel, ts, choice, shows, atom) VALUES ($1, $2, $3, $4, $5, $6, $7)
     RETURNING number;
\echo '## presses.rs 163'
PREPARE s163 AS UPDATE press SET atom = NULL WHERE number = $1 AND atom IS NOT NULL;
\echo '## presses.rs 164'
PREPARE s164 AS DELETE FROM press WHERE number = $1;
\echo '## erase.rs 165'
PREPARE s165 AS SELECT id, blocks FROM message WHERE turn_id = $1 AND role = 'user' AND origin = 'user'
     ORDER BY id LIMIT 1;
\echo '## erase.rs 166'
PREPARE s166 AS SELECT id FROM message WHERE turn_id = $1 AND role = 'user' AND origin = 'attachment' ORDER BY id;
\echo '## erase.rs 167'
PREPARE s167 AS SELECT id, role, blocks FROM message WHERE turn_id = $1 ORDER BY id DESC LIMIT 1;
\echo '## erase.rs 168'
PREPARE s168 AS SELECT session_id, answered_with, piece_start, piece_bytes FROM turn WHERE id = $1;
\echo '## erase.rs 169'
PREPARE s169 AS UPDATE message SET blocks = $2, tokens = $3, chars = $4, erased_at = $5 WHERE id = $1;
\echo '## erase.rs 170'
PREPARE s170 AS UPDATE live SET replacement = NULL, tokens = $3, chars = $4
     WHERE session_id = $1 AND message_id = $2;
\echo '## erase.rs 171'
PREPARE s171 AS UPDATE turn SET piece_bytes = $2 WHERE id = $1;
\echo '## erase.rs 172'
PREPARE s172 AS UPDATE turn SET piece_start = piece_start + $3 WHERE answered_with = $1 AND piece_start > $2;
\echo '## erase.rs 173'
PREPARE s173 AS UPDATE turn SET reading = NULL WHERE id = $1;
\echo '## erase.rs 174'
PREPARE s174 AS UPDATE inbox SET edited = NULL, attached = NULL WHERE id = $1;
\echo '## erase.rs 175'
PREPARE s175 AS DELETE FROM proposal WHERE turn_id = $1 AND confirmed_by IS NULL;
\echo '## erase.rs 176'
PREPARE s176 AS SELECT 1 FROM live WHERE session_id = $1 AND message_id = $2;
\echo '## erase.rs 177'
PREPARE s177 AS SELECT count(*) FROM message WHERE session_id = $1 AND id > $2 AND origin = 'summary';
\echo '## proposals.rs 178'
PREPARE s178 AS INSERT INTO proposal (turn_id, part, marker, confirmation, proposed_at) VALUES ($1, $2, $3, $4, $5);
\echo '## proposals.rs 179'
PREPARE s179 AS DELETE FROM proposal WHERE proposed_at <= $1 AND confirmed_by IS NULL;
\echo '## proposals.rs 180'
PREPARE s180 AS SELECT p.turn_id, p.confirmation, p.proposed_at, p.confirmed_by
     FROM outbox o JOIN proposal p ON p.turn_id = o.turn_id AND p.part = o.part
     WHERE o.sent_id = $1;
\echo '## proposals.rs 181'
PREPARE s181 AS UPDATE proposal SET confirmed_by = $2 WHERE turn_id = $1;
\echo '## proposals.rs 182'
PREPARE s182 AS DELETE FROM proposal WHERE turn_id = $1;
\echo '## proposals.rs 183'
PREPARE s183 AS SELECT marker FROM proposal WHERE confirmed_by = $1;
\echo '## proposals.rs 184'
PREPARE s184 AS UPDATE proposal SET confirmed_by = NULL, proposed_at = $2 WHERE confirmed_by = $1;
\echo '## proposals.rs 185'
PREPARE s185 AS DELETE FROM proposal WHERE confirmed_by = (SELECT event_id FROM inbox WHERE id = $1);
\echo '## experiments.rs 186'
PREPARE s186 AS SELECT coalesce(moved_to, arm) FROM arm WHERE experiment = $1 AND session_id = $2;
\echo '## experiments.rs 187'
PREPARE s187 AS INSERT INTO arm (experiment, session_id, arm, weights, drawn_at, moved_to)
     VALUES ($1, $2, $3, $4, $5, (SELECT $6 FROM stopped_arm WHERE experiment = $1 AND arm = $3))
     ON CONFLICT (experiment, session_id) DO NOTHING;
\echo '## experiments.rs 188'
PREPARE s188 AS SELECT t.id, s.key, t.policy, t.experiment, t.arm
     FROM outbox o JOIN turn t ON t.id = o.turn_id JOIN session s ON s.id = t.session_id
     WHERE o.sent_id = $1;
\echo '## experiments.rs 189'
PREPARE s189 AS INSERT INTO vote (turn_id, "user", likes) VALUES ($1, $2, $3)
     ON CONFLICT (turn_id, "user") DO UPDATE SET likes = excluded.likes WHERE vote.likes <> excluded.likes;
\echo '## experiments.rs 190'
PREPARE s190 AS INSERT INTO stopped_arm (experiment, arm, stopped_at, reason) VALUES ($1, $2, $3, $4)
     ON CONFLICT (experiment, arm) DO NOTHING;
\echo '## experiments.rs 191'
PREPARE s191 AS UPDATE arm SET moved_to = $3 WHERE experiment = $1 AND coalesce(moved_to, arm) = $2;
\echo '## experiments.rs 192'
PREPARE s192 AS SELECT arm, reason, stopped_at FROM stopped_arm WHERE experiment = $1 ORDER BY arm;
\echo '## experiments.rs 193'
PREPARE s193 AS SELECT 1 FROM arm WHERE experiment = $1 LIMIT 1;
\echo '## experiments.rs 194'
PREPARE s194 AS SELECT experiment FROM arm ORDER BY drawn_at DESC LIMIT 1;
\echo '## experiments.rs 195'
PREPARE s195 AS SELECT a.arm, a.weights, a.moved_to IS NOT NULL, count(t.id),
            CAST(coalesce(sum(t.failed), 0) AS BIGINT), CAST(coalesce(sum(t.overflowed), 0) AS BIGINT),
            CAST(coalesce(sum(t.reasked), 0) AS BIGINT),
            CAST(coalesce(sum(t.input_tokens + t.cache_read_tokens + t.cache_creation_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(t.output_tokens), 0) AS BIGINT),
            CAST(coalesce(sum(CASE WHEN t.delivered_at > i.received_at THEN t.delivered_at - i.received_at END), 0) AS BIGINT),
            (SELECT count(*) FROM turn u JOIN vote v ON v.turn_id = u.id
             WHERE u.experiment = a.experiment AND u.session_id = a.session_id AND u.arm = a.arm AND v.likes = 1),
            (SELECT count(*) FROM turn u JOIN vote v ON v.turn_id = u.id
             WHERE u.experiment = a.experiment AND u.session_id = a.session_id AND u.arm = a.arm AND v.likes = 0)
     FROM arm a
     LEFT JOIN turn t ON t.experiment = a.experiment AND t.session_id = a.session_id AND t.arm = a.arm
     LEFT JOIN inbox i ON i.id = t.id
     WHERE a.experiment = $1 GROUP BY a.experiment, a.session_id;
\echo '## lease.rs 196'
PREPARE s196 AS SELECT id, lease_owner, lease_until FROM session WHERE key = $1;
\echo '## lease.rs 197'
PREPARE s197 AS UPDATE session SET lease_owner = $2, lease_until = $3 WHERE id = $1;
\echo '## lease.rs 198'
PREPARE s198 AS UPDATE session SET lease_owner = NULL, lease_until = NULL WHERE id = $1 AND lease_owner = $2;
\echo '## lease.rs 199'
PREPARE s199 AS UPDATE session SET lease_owner = NULL, lease_until = NULL WHERE id = $1 AND lease_until IS NULL;
\echo '## lease.rs 200'
PREPARE s200 AS UPDATE session SET lease_owner = NULL, lease_until = NULL WHERE lease_owner IS NOT NULL;
\echo '## lease.rs 201'
PREPARE s201 AS UPDATE session SET lease_owner = NULL, lease_until = NULL
     WHERE lease_owner IS NOT NULL AND lease_until IS NULL;
\echo '## turns.rs 202'
PREPARE s202 AS SELECT i.message, i.received_at, i.session_id, s.lease_until, s.dropped_turns, s.marker, s.verbose,
            t.id IS NOT NULL AS begun, t.placeholder, t.answered_at IS NOT NULL AS answered, t.report,
            t.policy, t.experiment, t.arm, t.reading, t.case_id, i.called_off, s.revision,
            COALESCE(t.may_have_placed, 0) AS placed, COALESCE(t.may_have_streamed, 0) AS streamed
     FROM inbox i JOIN session s ON s.id = i.session_id LEFT JOIN turn t ON t.id = i.id
     WHERE i.id = $1 AND i.parked_at IS NULL;
\echo '## turns.rs 203'
PREPARE s203 AS UPDATE session SET "verbose" = $2 WHERE id = $1;
\echo '## turns.rs 204'
PREPARE s204 AS INSERT INTO turn (id, session_id, started_at, case_id) VALUES ($1, $2, $3, $4);
\echo '## turns.rs 205'
PREPARE s205 AS UPDATE turn SET placeholder = $2 WHERE id = $1 AND delivered_at IS NULL;
\echo '## turns.rs 206'
PREPARE s206 AS UPDATE turn SET may_have_placed = 1 WHERE id = $1 AND delivered_at IS NULL;
\echo '## turns.rs 207'
PREPARE s207 AS UPDATE turn SET may_have_streamed = 1 WHERE id = $1 AND delivered_at IS NULL;
\echo '## turns.rs 208'
PREPARE s208 AS SELECT message FROM inbox WHERE id = $1 AND message IS NOT NULL;
\echo '## turns.rs 209'
PREPARE s209 AS UPDATE inbox SET message = $2 WHERE id = $1 AND message IS NOT NULL;
\echo '## turns.rs 210'
PREPARE s210 AS UPDATE turn SET answered_at = $2, report = $3, input_tokens = $4, output_tokens = $5,
            cache_read_tokens = $6, cache_creation_tokens = $7,
            policy = $8, experiment = $9, arm = $10, failed = $11, overflowed = $12, reasked = $13, asked_by = $14,
            placeholder = coalesce($15, placeholder)
     WHERE id = $1 AND answered_at IS NULL AND delivered_at IS NULL;
\echo '## turns.rs 211'
PREPARE s211 AS SELECT t.session_id, s.revision,
            (SELECT coalesce(max(l.position) + 1, 0) FROM live l WHERE l.session_id = t.session_id)
     FROM turn t JOIN session s ON s.id = t.session_id WHERE t.id = $1;
\echo '## turns.rs 212'
PREPARE s212 AS UPDATE turn SET answered_at = $2, delivered_at = $2, asked_by = $3, answered_with = $4
     WHERE id = $1 AND answered_at IS NULL;
\echo '## turns.rs 213'
PREPARE s213 AS UPDATE turn SET answered_with = $2, piece_start = $3, piece_bytes = $4 WHERE id = $1;
\echo '## turns.rs 214'
PREPARE s214 AS UPDATE session SET turns = turns + 1 WHERE id = $1;
\echo '## turns.rs 215'
PREPARE s215 AS DELETE FROM message WHERE turn_id = $1;
\echo '## turns.rs 216'
PREPARE s216 AS INSERT INTO outbox (turn_id, part, body, how) VALUES ($1, $2, $3, $4);
\echo '## turns.rs 217'
PREPARE s217 AS SELECT part, body, how FROM outbox WHERE turn_id = $1 AND sent_at IS NULL ORDER BY part;
\echo '## turns.rs 218'
PREPARE s218 AS SELECT sent_id FROM outbox WHERE turn_id = $1 AND part = 0;
\echo '## turns.rs 219'
PREPARE s219 AS UPDATE outbox SET sent_id = $3, sent_at = $4 WHERE turn_id = $1 AND part = $2 AND sent_at IS NULL;
\echo '## turns.rs 220'
PREPARE s220 AS SELECT 1 FROM outbox WHERE turn_id = $1 AND sent_at IS NULL;
\echo '## turns.rs 221'
PREPARE s221 AS SELECT 1 FROM inbox i JOIN outbox o ON o.turn_id = i.id
     WHERE i.message IS NOT NULL AND i.parked_at IS NULL AND i.channel = $1 AND o.sent_at IS NULL;
\echo '## turns.rs 222'
PREPARE s222 AS UPDATE outbox SET body = NULL WHERE turn_id = $1;
\echo '## turns.rs 223'
PREPARE s223 AS UPDATE turn SET delivered_at = $2, report = NULL WHERE id = $1 AND delivered_at IS NULL;
\echo '## turns.rs 224'
PREPARE s224 AS SELECT session_id FROM turn WHERE id = $1;
\echo '## turns.rs 225'
PREPARE s225 AS UPDATE inbox SET message = NULL,
            attached = CASE WHEN json_valid(message) THEN json_remove(json_extract(message, '$.attached'), '$.thread') END
     WHERE id = $1;
\echo '## copying.rs 226'
PREPARE s226 AS SELECT CAST(attname AS TEXT) FROM pg_attribute
     WHERE attrelid = CAST($1 AS regclass) AND attnum > 0 AND NOT attisdropped ORDER BY attnum;
\echo '## copying.rs 227'
PREPARE s227 AS SELECT m.id, m.role, m.origin, m.blocks, NULL, m.tokens, m.chars FROM message m WHERE m.id = $1;
\echo '## hosts.rs 228'
PREPARE s228 AS DELETE FROM host WHERE until <= pmk_now() OR name = $1;
\echo '## hosts.rs 229'
PREPARE s229 AS SELECT owner FROM host WHERE until > pmk_now() ORDER BY id LIMIT 1;
\echo '## hosts.rs 230'
PREPARE s230 AS INSERT INTO host (name, owner, version, started_at, until, lease_ms)
     VALUES ($1, $2, $3, pmk_now(), pmk_now() + $4, $4);
\echo '## hosts.rs 231'
PREPARE s231 AS SELECT max(until - lease_ms) FROM host;
\echo '## hosts.rs 232'
PREPARE s232 AS UPDATE host SET until = pmk_now(), lease_ms = 0 WHERE id = $1;
\echo '## index.rs 233'
PREPARE s233 AS INSERT INTO said (message_id, session_id, terms) VALUES ($1, $2, string_to_array($3, ' '))
     ON CONFLICT (message_id) DO UPDATE SET terms = excluded.terms;
\echo '## index.rs 234'
PREPARE s234 AS DELETE FROM said WHERE message_id = $1;
\echo '## index.rs 235'
PREPARE s235 AS SELECT count(*) FROM said WHERE session_id = $1;
\echo '## index.rs 236'
PREPARE s236 AS SELECT t.term, count(*) FROM unnest(string_to_array($1 COLLATE "C", ' ')) AS t (term)
     JOIN said s ON s.terms @> ARRAY[t.term] GROUP BY t.term;
\echo '## index.rs 237'
PREPARE s237 AS SELECT t.place, s.message_id, cardinality(array_positions(s.terms, t.term))
     FROM unnest(string_to_array($1 COLLATE "C", ' ')) WITH ORDINALITY AS t (term, place)
     JOIN said s ON s.terms @> ARRAY[t.term] ORDER BY t.place, s.message_id;
\echo '## reader.rs 238'
PREPARE s238 AS SELECT m.id, m.role, m.origin, m.blocks, NULL, m.tokens, m.chars
     FROM archive a JOIN message m ON m.id = a.message_id
     WHERE a.session_id = $1 AND a.number >= $2 AND a.number < $3 ORDER BY a.number;
\echo '## reader.rs 239'
PREPARE s239 AS SELECT message_id, terms FROM archive WHERE session_id = $1 AND number < $2 ORDER BY number;
\echo '## travel.rs 240'
PREPARE s240 AS SELECT c.message_id, c.user, c.at
     FROM case_message c JOIN message m ON m.id = c.message_id
     WHERE c.case_id = $1 AND m.session_id = $2 ORDER BY c.at, c.message_id;
\echo '## travel.rs 241'
PREPARE s241 AS SELECT 1 FROM case_file WHERE id = $1;
\echo '## travel.rs 242'
PREPARE s242 AS INSERT INTO case_file (front, channel, title, opened_by, opened_at, closed_by, closed_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7);
\echo '## travel.rs 243'
PREPARE s243 AS INSERT INTO case_file (front, channel, title, opened_by, opened_at, closed_by, closed_at, id)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8);
\echo '## travel.rs 244'
PREPARE s244 AS SELECT 1 FROM case_message c JOIN message m ON m.id = c.message_id
     WHERE c.case_id = $1 AND m.session_id = $2 AND c.at = $3 AND c.user IS NOT DISTINCT FROM $4 AND m.blocks = $5;
\echo '## travel.rs 245'
PREPARE s245 AS UPDATE case_note SET message_id = $4
     WHERE case_id = $1 AND kind = $2 AND spelling = $3 AND message_id IS NULL;
