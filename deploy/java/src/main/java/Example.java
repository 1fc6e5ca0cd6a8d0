import fairlead.session.v1.EventOuterClass.Event;
import fairlead.session.v1.SessionOuterClass.Session;
import fairlead.session.v1.SessionServiceGrpc;
import fairlead.session.v1.SessionServiceOuterClass.*;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.MetadataUtils;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/** Runs one turn: prints its text as it arrives, approves every call that asks, and ends with the turn. */
public final class Example {
  private final SessionServiceGrpc.SessionServiceBlockingStub service;
  private final TreeMap<Long, String> texts = new TreeMap<>(); // by the last sequence number of their event
  private long seen; // the highest sequence number so far

  private Example(SessionServiceGrpc.SessionServiceBlockingStub service) {
    this.service = service;
  }

  public static void main(String[] words) throws InterruptedException {
    String target = Objects.requireNonNullElse(System.getenv("FAIRLEAD_TARGET"), "127.0.0.1:9090");
    String key = Objects.requireNonNullElse(System.getenv("FAIRLEAD_API_KEY"), "");
    Metadata headers = new Metadata();
    if (!key.isEmpty()) {
      headers.put(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + key);
    }
    // For a server with TLS: TlsChannelCredentials.create().
    ManagedChannel channel = Grpc.newChannelBuilder(target, InsecureChannelCredentials.create())
        .maxInboundMessageSize(16 << 20).keepAliveTime(30, TimeUnit.SECONDS).build();
    try {
      var service = SessionServiceGrpc.newBlockingStub(channel)
          .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(headers));
      new Example(service).run(String.join(" ", words));
    } catch (StatusRuntimeException e) {
      System.err.println(e.getStatus().getCode() + ": " + e.getStatus().getDescription());
      System.exit(1);
    } finally {
      channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
    }
  }

  private void run(String text) throws InterruptedException {
    var calls = service.withDeadlineAfter(60, TimeUnit.SECONDS);
    var empty = Session.getDefaultInstance(); // the default agent's; or newBuilder().setAgent("coder").build()
    String session = calls.createSession(CreateSessionRequest.newBuilder().setSession(empty).build()).getSession().getName();
    String turn = calls.createTurn(CreateTurnRequest.newBuilder().setParent(session).setText(text).build()).getTurn().getName();
    while (!follow(session, turn)) {
      TimeUnit.MILLISECONDS.sleep(500); // the stream has ended before the turn
    }
  }

  /** Shows what comes after the last event that was seen. Returns true after the turn's last event. */
  private boolean follow(String session, String turn) {
    try {
      var after = StreamEventsRequest.newBuilder().setParent(session).setAfterSeq(seen).build();
      var stream = service.withWaitForReady().streamEvents(after);
      while (stream.hasNext()) {
        var piece = stream.next();
        if (piece.hasEvent() && piece.getEvent().getSeq() > seen) {
          Event event = piece.getEvent();
          boolean ours = event.getTurn().equals(turn);
          if (ours) {
            show(session, event);
          }
          seen = event.getSeq();
          if (ours && event.hasTurnFinished()) {
            return true;
          }
        }
      }
    } catch (StatusRuntimeException e) {
      if (e.getStatus().getCode() != Status.Code.UNAVAILABLE) {
        throw e;
      }
    }
    return false;
  }

  private void show(String session, Event event) {
    switch (event.getBodyCase()) {
      case TEXT_DELTA -> {
        boolean repeats = drop(event.getFirstSeq(), event.getSeq());
        texts.put(event.getSeq(), event.getTextDelta().getText());
        System.out.print(repeats ? "\n" + String.join("", texts.values()) : event.getTextDelta().getText());
        System.out.flush();
      }
      case STEP_RESTARTED -> {
        if (drop(event.getStepRestarted().getVoidFirstSeq(), event.getStepRestarted().getVoidLastSeq())) {
          System.out.print("\n" + String.join("", texts.values()));
        }
      }
      case APPROVAL_REQUESTED -> {
        var asked = event.getApprovalRequested();
        var yes = ResolveApprovalRequest.newBuilder().setParent(session).setCallId(asked.getCallId())
            .setDigest(asked.getDigest()).setApproved(true).setRequestId(asked.getCallId()); // sent again, it has one effect
        service.withDeadlineAfter(60, TimeUnit.SECONDS).resolveApproval(yes.build());
        System.out.println("\n[" + asked.getTool() + " is approved]");
      }
      case TURN_FINISHED -> System.out.println("\n" + event.getTurnFinished().getState());
      default -> { }
    }
  }

  /** Forgets the texts of a range that an event repeats or makes void. */
  private boolean drop(long first, long last) {
    var range = texts.subMap(first, true, last, true);
    boolean any = !range.isEmpty();
    range.clear();
    return any;
  }
}
