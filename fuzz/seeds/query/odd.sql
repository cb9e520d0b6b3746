explain privacy create stream "a b" as select count(x), sum_by(x, y, 0, 5, 10) window tumbling (size 10 seconds) from S -- said
where "weird ""name""" in ('it''s', 'b') or not c >= -1.5;
