// SPDX-License-Identifier: MIT OR Apache-2.0
// Properties of lane_fifo, put before its end by prove.py. Two watched words enter one after the other; they come out once
// each, in that order.
`ifdef FORMAL
  logic started;
  initial started = 1'b0;
  always_ff @(posedge clk) started <= 1'b1;
  always_comb begin
    assume (rst == !started);
    // The dispatcher pushes where there is room, and the scheduler takes heads that are there.
    if (rst || full) assume (!push);
    if (rst || !valid) assume (!pop);
  end

  localparam logic [WIDTH-1:0] FIRST = WIDTH'(1);
  localparam logic [WIDTH-1:0] SECOND = WIDTH'(2);
  logic first_in, second_in, first_out, second_out;
  always_comb begin
    if (push && in == FIRST) assume (!first_in);
    if (push && in == SECOND) assume (first_in && !second_in);
  end
  wire take_first = valid && pop && head == FIRST;
  wire take_second = valid && pop && head == SECOND;
  always_ff @(posedge clk) begin
    first_in   <= !rst && (first_in || (push && in == FIRST));
    second_in  <= !rst && (second_in || (push && in == SECOND));
    first_out  <= !rst && (first_out || take_first);
    second_out <= !rst && (second_out || take_second);
  end

  wire [BITS:0] words_held = write_at - read_at;
  logic [BITS+1:0] firsts, seconds, order;
  always_comb begin
    firsts  = (BITS + 2)'(valid && head == FIRST);
    seconds = (BITS + 2)'(valid && head == SECOND);
    order   = '0;  // words FIRST that are behind a SECOND
    for (int i = 0; i < DEPTH; i++) begin
      if ((BITS + 1)'(i) < words_held) begin
        if (words[BITS'(read_at + (BITS + 1)'(i))] == FIRST) begin
          firsts = firsts + 1'b1;
          if (seconds != '0) order = order + 1'b1;
        end
        if (words[BITS'(read_at + (BITS + 1)'(i))] == SECOND) seconds = seconds + 1'b1;
      end
    end
  end
  always_comb if (started) begin
    assert (words_held <= (BITS + 1)'(DEPTH));
    assert (full == (words_held == (BITS + 1)'(DEPTH)));
    assert (32'(fill) == 32'(words_held) + 32'(valid));
    assert (firsts == (BITS + 2)'(first_in && !first_out));
    assert (seconds == (BITS + 2)'(second_in && !second_out));
    assert (order == '0);
    assert (!(take_second && !first_out));
    assert (!(second_in && !first_in) && !(first_out && !first_in) && !(second_out && !second_in));
    assert (!(second_out && !first_out));
  end
`endif
