//! What people read: every sentence the gateway itself says in a conversation, in Traditional Chinese
//! and English. The words of the seeds are used where they give any.

use crate::model::ModelError;

/// Goes before an answer that was made with less of the conversation (seed 000 §2.2).
pub fn trimmed(turns: u32) -> String {
    format!(":scissors: 對話過長，已自動裁掉 {turns} 輪舊訊息 (older messages were left out: {turns} turns)\n\n")
}

/// Goes before the answer to a message that had files attached.
pub fn files_not_read(files: u32) -> String {
    format!(":paperclip: 附加的 {files} 個檔案沒有讀取，只讀了文字 (the attached files were not read)\n\n")
}

/// Every way to make the prompt fit was tried (seed 000 §2.2).
pub fn too_long() -> String {
    ":x: 對話太長，請開新 thread 重新提問 (the conversation is too long; please ask again in a new thread)".into()
}

/// The new message alone is more than the model can take.
pub fn message_too_long(tokens: u64, limit: u64) -> String {
    format!(
        ":x: 這則訊息太長：約 {tokens} tokens，上限 {limit}，請縮短或分成幾則 \
         (this message is too long: about {tokens} tokens where {limit} fit; please shorten or split it)"
    )
}

/// A message without text.
pub fn nothing_to_read() -> String {
    ":grey_question: 這則訊息沒有文字可讀 (there was no text to read in this message)".into()
}

/// The model gave no answer.
pub fn no_answer(error: &ModelError) -> String {
    let (chinese, english) = match error {
        ModelError::Overflow { .. } => return too_long(),
        ModelError::RateLimited { .. } | ModelError::Overloaded { .. } => {
            ("模型現在太忙，請稍後再問一次", "the model is too busy right now; please ask again in a while")
        }
        ModelError::Auth { .. } | ModelError::Billing { .. } => {
            ("模型的帳號設定有問題，請通知管理員", "the model's account needs the attention of an admin")
        }
        ModelError::Refused { .. } => ("模型拒絕回答這個問題", "the model declined to answer this"),
        ModelError::Timeout { .. } => {
            ("模型沒有在時限內回答，請再問一次", "the model did not answer in time; please ask again")
        }
        ModelError::Transport { .. } => ("連不上模型，請再問一次", "the model could not be reached; please ask again"),
        ModelError::MalformedHistory { .. } | ModelError::Other { .. } => (
            "模型回報錯誤，請再問一次；若一再發生請通知管理員",
            "the model reported an error; please ask again, or tell an admin if it goes on",
        ),
    };
    format!(":x: {chinese} ({english})")
}
