-- All hosts of a database work, and none waits.
DROP TABLE host_waiting;

ALTER TABLE inbox ADD COLUMN home TEXT COLLATE "C"; -- of the host that has taken it in: machine and home, as in `host`
CREATE INDEX session_leased ON session (lease_owner) WHERE lease_owner IS NOT NULL;

-- Since when a host was heard of without a break as long as its lease: only such a one tells who is gone.
ALTER TABLE host ADD COLUMN heard_since BIGINT NOT NULL DEFAULT 0;
ALTER TABLE host ADD COLUMN leaving BOOLEAN NOT NULL DEFAULT false; -- it begins nothing any more

CREATE OR REPLACE FUNCTION pmk_host_writes(host_id BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    now_ms BIGINT := pmk_now();
    kept   RECORD;
BEGIN
    SELECT h.until, h.lease_ms INTO kept FROM host h WHERE h.id = host_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this host was taken over' USING ERRCODE = 'PMK01';
    END IF;
    IF kept.until - now_ms < kept.lease_ms * 3 / 4 THEN
        UPDATE host h SET until = now_ms + h.lease_ms,
                          heard_since = CASE WHEN h.until < now_ms THEN now_ms ELSE h.heard_since END
        WHERE h.id = host_id;
    END IF;
END $$;
