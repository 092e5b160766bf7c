// SPDX-License-Identifier: Apache-2.0

#include "src/coord/etcd/etcd_coordinator.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/coding.h"
#include "src/base/strings.h"
#include "src/coord/etcd/etcd_hints.h"
#include "src/coord/etcd/etcd_session.h"
#include "src/etcd/etcd_client.h"

namespace percolator {
namespace {

// Returns zero if `text` is not a number.
uint64_t ParseNumber(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class EtcdCoordinator final : public Coordinator {
 public:
  EtcdCoordinator(EtcdOptions options, Oracle* oracle, std::unique_ptr<EtcdClient> client)
      : options_(std::move(options)), oracle_(oracle), client_(std::move(client)), hints_(client_.get(), options_) {}

  absl::StatusOr<std::unique_ptr<Session>> OpenSession() override;
  absl::StatusOr<bool> IsAlive(SessionId session) override;
  absl::StatusOr<Timestamp> OldestSnapshot() override;
  absl::StatusOr<bool> Campaign(std::string_view role, const Session& session) override {
    return Hold(StrCat(options_.prefix, "roles/", role), session.id());
  }
  absl::StatusOr<bool> Claim(std::string_view table, std::string_view row, const Session& session) override {
    return Hold(ClaimKey(table, row), session.id());
  }
  absl::Status Release(std::string_view table, std::string_view row, const Session& session) override;
  void SendHint(const CellName& cell) override { hints_.Send(cell); }
  void SetHintListener(HintListener listener) override { hints_.Listen(std::move(listener)); }

 private:
  std::string ClaimKey(std::string_view table, std::string_view row) const;
  // Takes the key for the session if no session has it. Returns whether the session has it.
  absl::StatusOr<bool> Hold(const std::string& key, SessionId session);

  const EtcdOptions options_;
  Oracle* const oracle_;
  const std::unique_ptr<EtcdClient> client_;
  EtcdHints hints_;
};

absl::StatusOr<std::unique_ptr<Session>> EtcdCoordinator::OpenSession() {
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp id, oracle_->GetTimestamp());
  return EtcdSession::Open(client_.get(), options_, id.value());
}

absl::StatusOr<bool> EtcdCoordinator::IsAlive(SessionId session) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<etcd::KeyValue> found,
                              client_->Get(SessionKey(options_.prefix, session), options_.timeout));
  return found.has_value();
}

absl::StatusOr<Timestamp> EtcdCoordinator::OldestSnapshot() {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<etcd::KeyValue> sessions,
                              client_->List(SessionPrefix(options_.prefix), options_.timeout));
  Timestamp oldest = Timestamp::Infinity();
  for (const etcd::KeyValue& session : sessions) {
    const Timestamp reported(ParseNumber(session.value()));
    if (reported != Timestamp()) oldest = std::min(oldest, reported);
  }
  return oldest;
}

// Encodes the table so that its end is unambiguous: otherwise two pairs of table and row could have the same key.
std::string EtcdCoordinator::ClaimKey(std::string_view table, std::string_view row) const {
  std::string key = StrCat(options_.prefix, "claims/");
  AppendOrderedString(&key, table);
  key.append(row);
  return key;
}

absl::StatusOr<bool> EtcdCoordinator::Hold(const std::string& key, SessionId session) {
  const std::string session_key = SessionKey(options_.prefix, session);
  const std::string holder = std::to_string(session);
  EtcdTxn txn;
  txn.IfAbsent(key).IfExists(session_key).ThenPut(key, holder, static_cast<int64_t>(session));
  txn.OtherwiseGet(key).OtherwiseGet(session_key);
  PERCOLATOR_ASSIGN_OR_RETURN(const EtcdClient::TxnResult result, client_->Commit(txn, options_.timeout));
  if (result.succeeded) return true;
  if (!result.otherwise[1].has_value()) {
    return absl::FailedPreconditionError(StrCat("unknown session ", session, ": it has ended or expired in etcd"));
  }
  return result.otherwise[0]->value() == holder;
}

absl::Status EtcdCoordinator::Release(std::string_view table, std::string_view row, const Session& session) {
  const std::string key = ClaimKey(table, row);
  EtcdTxn txn;
  txn.IfValue(key, std::to_string(session.id())).ThenDelete(key);
  return client_->Commit(txn, options_.timeout).status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> OpenEtcdCoordinator(const EtcdOptions& options, Oracle* oracle) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<EtcdClient> client, EtcdClient::Open(options.endpoints, options.tls));
  return std::make_unique<EtcdCoordinator>(options, oracle, std::move(client));
}

}  // namespace percolator
